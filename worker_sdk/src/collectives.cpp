#include "worker_sdk/src/collectives.hpp"

#include <algorithm>
#include <array>

namespace muster::worker {
namespace {

/// Bits 24 to 55 carry the tag, the lowest the phase of an operation that has several.
std::uint64_t slot_of(const Call& call, std::uint64_t phase = 0) {
  return (std::uint64_t{call.tag} << 24) | phase;
}

/// Where a rank stands in the ring. Chunk numbers are taken modulo the size.
struct Ring {
  explicit Ring(const Call& call) : rank(call.mesh.rank()), size(call.mesh.size()) {}
  int right() const { return (rank + 1) % size; }
  int left() const { return (rank + size - 1) % size; }
  std::size_t chunk(std::size_t behind) const {
    const auto n = static_cast<std::size_t>(size);
    return (static_cast<std::size_t>(rank) + 2 * n - behind) % n;
  }
  std::size_t steps() const { return static_cast<std::size_t>(size) - 1; }
  int rank;
  int size;
};

/// At least two: a segment of one step is sent on only after it was finished in the step before, and two are
/// under way at a time. The same on all ranks, as they all know all chunks.
std::size_t segments_of(const std::vector<Chunk>& chunks, std::size_t element_bytes) {
  std::size_t longest = 0;
  for (const auto& chunk : chunks) longest = std::max(longest, chunk.count * element_bytes);
  return std::max<std::size_t>(2, (longest + max_segment_bytes - 1) / max_segment_bytes);
}

/// The `index`-th of `count` segments, in bytes.
struct Bytes {
  std::size_t begin;
  std::size_t length;
};

Bytes segment(const Chunk& chunk, std::size_t index, std::size_t count, std::size_t element_bytes) {
  const auto begin = chunk.begin + chunk.count * index / count;
  const auto end = chunk.begin + chunk.count * (index + 1) / count;
  return {begin * element_bytes, (end - begin) * element_bytes};
}

/// Begins item i + 2 when item i is done.
void pipeline(std::size_t items, auto begin, auto finish) {
  for (std::size_t i = 0; i < items + 2; ++i) {
    if (i >= 2) finish(i - 2);
    if (i < items) begin(i);
  }
}

/// One item: a segment goes out to the right while another comes in from the left. Both ends know all
/// lengths, so an empty one needs no message.
struct Transfer {
  MessageBuffer& from;
  Bytes outgoing;
  MessageBuffer& to;
  Bytes incoming;

  void begin(const Call& call, std::uint64_t slot) const {
    const Ring ring(call);
    // In this order. What the neighbour has not asked for yet, the transport's own thread sends later; while we send it
    // here and something comes in, that thread turns in circles until we let go of the connection.
    if (outgoing.length > 0) from.send(ring.right(), slot, outgoing.begin, outgoing.length);
    if (incoming.length > 0) to.receive(ring.left(), slot, incoming.begin, incoming.length);
  }
  void finish(const Call& call) const {
    const Ring ring(call);
    if (incoming.length > 0) to.wait_received(ring.left(), call.deadline);
    if (outgoing.length > 0) from.wait_sent(ring.right(), call.deadline);
  }
};

/// Two segments that were received and not yet added up.
class Arrivals {
 public:
  Arrivals(Mesh& mesh, const std::vector<Chunk>& chunks, std::size_t segments, std::size_t element_bytes)
      : stride_(stride(chunks, segments, element_bytes)),
        memory_(2 * stride_),
        buffer_(mesh, memory_.data(), memory_.size()) {}
  MessageBuffer& buffer() { return buffer_; }
  Bytes place(std::size_t item, std::size_t length) const { return {item % 2 * stride_, length}; }
  const std::byte* data(std::size_t item) const { return memory_.data() + item % 2 * stride_; }

 private:
  static std::size_t stride(const std::vector<Chunk>& chunks, std::size_t segments,
                            std::size_t element_bytes) {
    std::size_t longest = 0;
    for (const auto& chunk : chunks)
      for (std::size_t i = 0; i < segments; ++i)
        longest = std::max(longest, segment(chunk, i, segments, element_bytes).length);
    return longest;
  }
  std::size_t stride_;
  std::vector<std::byte> memory_;
  MessageBuffer buffer_;
};

/// The first half of an all-reduce: afterwards rank r holds chunk r finished, the others hold partial sums.
void ring_reduce(const Call& call, Elements elements, MessageBuffer& buffer, const std::vector<Chunk>& chunks,
                 Reduce reduce) {
  const Ring ring(call);
  const auto segments = segments_of(chunks, elements.element_bytes);
  Arrivals arrivals(call.mesh, chunks, segments, elements.element_bytes);
  const auto part = [&](std::size_t item, std::size_t behind) {
    return segment(chunks[ring.chunk(item / segments + behind)], item % segments, segments,
                   elements.element_bytes);
  };
  const auto transfer = [&](std::size_t item) {
    return Transfer{buffer, part(item, 1), arrivals.buffer(), arrivals.place(item, part(item, 2).length)};
  };
  pipeline(
      ring.steps() * segments, [&](std::size_t item) { transfer(item).begin(call, slot_of(call)); },
      [&](std::size_t item) {
        transfer(item).finish(call);
        const auto target = part(item, 2);
        auto* own = elements.data + target.begin;
        reduce(own, own, arrivals.data(item), target.length / elements.element_bytes);
      });
}

/// The second half: chunk r, finished on rank r, comes to all.
void ring_gather(const Call& call, MessageBuffer& buffer, const std::vector<Chunk>& chunks,
                 std::size_t element_bytes) {
  const Ring ring(call);
  const auto segments = segments_of(chunks, element_bytes);
  const auto part = [&](std::size_t item, std::size_t behind) {
    return segment(chunks[ring.chunk(item / segments + behind)], item % segments, segments, element_bytes);
  };
  const auto transfer = [&](std::size_t item) {
    return Transfer{buffer, part(item, 0), buffer, part(item, 1)};
  };
  pipeline(
      ring.steps() * segments, [&](std::size_t item) { transfer(item).begin(call, slot_of(call, 1)); },
      [&](std::size_t item) { transfer(item).finish(call); });
}

std::size_t end_of(const std::vector<Chunk>& chunks) { return chunks.back().begin + chunks.back().count; }

}  // namespace

std::vector<Chunk> even_chunks(std::size_t count, std::size_t parts) {
  std::vector<Chunk> chunks(parts);
  const std::size_t longer = count % parts;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < parts; ++i) {
    chunks[i] = {begin, count / parts + (i < longer ? 1 : 0)};
    begin += chunks[i].count;
  }
  return chunks;
}

void barrier(const Call& call) {
  const int size = call.mesh.size();
  const int rank = call.mesh.rank();
  MessageBuffer buffer(call.mesh, nullptr, 0);
  std::uint64_t round = 0;
  for (std::int64_t distance = 1; distance < size; distance *= 2, ++round) {
    const int before = static_cast<int>((rank + size - distance) % size);
    const int after = static_cast<int>((rank + distance) % size);
    buffer.receive(before, slot_of(call, round), 0, 0);
    buffer.send(after, slot_of(call, round), 0, 0);
    buffer.wait_received(before, call.deadline);
    buffer.wait_sent(after, call.deadline);
  }
}

void broadcast(const Call& call, Elements elements, std::size_t count, int root) {
  const std::int64_t size = call.mesh.size();
  const std::int64_t place = (call.mesh.rank() + size - root) % size;  // the root's is 0
  const auto rank_of = [&](std::int64_t other) { return static_cast<int>((other + root) % size); };
  const std::size_t bytes = count * elements.element_bytes;
  MessageBuffer buffer(call.mesh, elements.data, bytes);

  // A place's parent is the place without its highest bit; its children are those with one more, higher bit.
  std::int64_t bit = 1;
  while (bit <= place) bit *= 2;
  if (place != 0) {
    const int parent = rank_of(place - bit / 2);
    buffer.receive(parent, slot_of(call), 0, bytes);
    buffer.wait_received(parent, call.deadline);
  }
  std::vector<int> children;
  for (; place + bit < size; bit *= 2) children.push_back(rank_of(place + bit));
  for (int child : children) buffer.send(child, slot_of(call), 0, bytes);
  for (int child : children) buffer.wait_sent(child, call.deadline);
}

void all_reduce(const Call& call, Elements elements, std::size_t count, Reduce reduce) {
  const auto chunks = even_chunks(count, static_cast<std::size_t>(call.mesh.size()));
  MessageBuffer buffer(call.mesh, elements.data, count * elements.element_bytes);
  ring_reduce(call, elements, buffer, chunks, reduce);
  ring_gather(call, buffer, chunks, elements.element_bytes);
}

void reduce_scatter(const Call& call, Elements input, std::byte* output, std::size_t count, Reduce reduce) {
  const Ring ring(call);
  const auto size = static_cast<std::size_t>(ring.size);
  const std::size_t element_bytes = input.element_bytes;
  const std::vector<Chunk> one{{0, count}};
  const auto segments = segments_of(one, element_bytes);
  Arrivals arrivals(call.mesh, one, segments, element_bytes);
  MessageBuffer from_input(call.mesh, input.data, size * count * element_bytes);
  MessageBuffer from_output(call.mesh, output, count * element_bytes);

  // Partial sums of all chunks pass through `output`; the last one to do so is this rank's own.
  const auto in_input = [&](std::size_t item, std::size_t behind) {
    const Chunk chunk{ring.chunk(item / segments + behind) * count, count};
    return segment(chunk, item % segments, segments, element_bytes);
  };
  const auto in_output = [&](std::size_t item) {
    return segment(one.front(), item % segments, segments, element_bytes);
  };
  const auto transfer = [&](std::size_t item) {
    const bool first_step = item < segments;
    return Transfer{first_step ? from_input : from_output, first_step ? in_input(item, 1) : in_output(item),
                    arrivals.buffer(), arrivals.place(item, in_output(item).length)};
  };
  pipeline(
      ring.steps() * segments, [&](std::size_t item) { transfer(item).begin(call, slot_of(call)); },
      [&](std::size_t item) {
        transfer(item).finish(call);
        const auto target = in_output(item);
        reduce(output + target.begin, input.data + in_input(item, 2).begin, arrivals.data(item),
               target.length / element_bytes);
      });
}

void all_gather(const Call& call, Elements elements, const std::vector<Chunk>& chunks) {
  MessageBuffer buffer(call.mesh, elements.data, end_of(chunks) * elements.element_bytes);
  ring_gather(call, buffer, chunks, elements.element_bytes);
}

void send(const Call& call, Elements elements, std::size_t count, int destination) {
  const std::size_t bytes = count * elements.element_bytes;
  MessageBuffer buffer(call.mesh, elements.data, bytes);
  buffer.send(destination, slot_of(call), 0, bytes);
  buffer.wait_sent(destination, call.deadline);
}

void receive(const Call& call, Elements elements, std::size_t count, int source) {
  const std::size_t bytes = count * elements.element_bytes;
  MessageBuffer buffer(call.mesh, elements.data, bytes);
  buffer.receive(source, slot_of(call), 0, bytes);
  buffer.wait_received(source, call.deadline);
}

}  // namespace muster::worker
