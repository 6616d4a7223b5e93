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
  std::size_t chunk(std::size_t behind) const {
    const auto n = static_cast<std::size_t>(size);
    return (static_cast<std::size_t>(rank) + 2 * n - behind) % n;
  }
  std::size_t steps() const { return static_cast<std::size_t>(size) - 1; }
  int rank;
  int size;
};

/// What is added up at a time: it fits into a core's own cache, and into whole elements.
constexpr std::size_t added_at_once = 256 << 10;

std::span<std::byte> bytes_of(Elements elements, const Chunk& chunk) {
  return {elements.data + chunk.begin * elements.element_bytes, chunk.count * elements.element_bytes};
}

/// The first half of an all-reduce: afterwards rank r holds chunk r finished, the others hold partial sums.
void ring_reduce(const Call& call, Elements elements, const std::vector<Chunk>& chunks, Reduce reduce) {
  const Ring ring(call);
  std::vector<std::byte> scratch(std::min(chunks.front().count * elements.element_bytes, added_at_once));
  for (std::size_t step = 0; step < ring.steps(); ++step) {
    const auto outgoing = bytes_of(elements, chunks[ring.chunk(step + 1)]);
    const auto own = bytes_of(elements, chunks[ring.chunk(step + 2)]);
    const auto add = [&](std::size_t begin, std::span<const std::byte> piece) {
      reduce(own.data() + begin, own.data() + begin, piece.data(), piece.size() / elements.element_bytes);
    };
    call.mesh.exchange(slot_of(call), outgoing, {own.size(), scratch, add}, call.deadline);
  }
}

/// The second half: chunk r, finished on rank r, comes to all.
void ring_gather(const Call& call, Elements elements, const std::vector<Chunk>& chunks) {
  const Ring ring(call);
  for (std::size_t step = 0; step < ring.steps(); ++step) {
    const auto outgoing = bytes_of(elements, chunks[ring.chunk(step)]);
    const auto incoming = bytes_of(elements, chunks[ring.chunk(step + 1)]);
    call.mesh.exchange(slot_of(call, 1), outgoing, {incoming.size(), incoming}, call.deadline);
  }
}

/// So many ranks pass a message on around the ring sooner than down a tree: a hop in the ring costs a system call or two,
/// one of the tree's goes through Gloo's threads.
constexpr int few_ranks = 8;

/// What is passed on around the ring at a time, while the next piece comes.
constexpr std::size_t piece_bytes = 256 << 10;

/// Each rank hears of one more rank in each step.
void ring_barrier(const Call& call) {
  std::array<std::byte, 1> token{};
  std::array<std::byte, 1> heard{};
  for (std::size_t step = 0; step < Ring(call).steps(); ++step)
    call.mesh.exchange(slot_of(call), token, {heard.size(), heard}, call.deadline);
}

/// From the root to the right; each rank passes a piece on while the next one comes. The last is the root's left
/// neighbour, and tells it that all have it: so the root, too, hears of a rank that calls something else.
void ring_broadcast(const Call& call, std::span<std::byte> bytes, int root) {
  const int size = call.mesh.size();
  const int place = (call.mesh.rank() + size - root) % size;
  const bool first = place == 0;
  const bool last = place == size - 1;
  const std::size_t pieces = (bytes.size() + piece_bytes - 1) / piece_bytes;
  const auto piece = [&](bool wanted, std::size_t number) {
    if (!wanted || number >= pieces) return std::span<std::byte>{};
    const auto begin = number * piece_bytes;
    return bytes.subspan(begin, std::min(piece_bytes, bytes.size() - begin));
  };
  for (std::size_t number = 0; number <= pieces; ++number) {
    const auto incoming = piece(!first, number);
    const auto outgoing = first ? piece(true, number) : piece(!last && number > 0, number - 1);
    call.mesh.exchange(slot_of(call), outgoing, {incoming.size(), incoming}, call.deadline);
  }
  std::array<std::byte, 1> token{};
  if (last) call.mesh.exchange(slot_of(call, 1), token, {}, call.deadline);
  if (first) call.mesh.exchange(slot_of(call, 1), {}, {token.size(), token}, call.deadline);
}

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
  if (size <= few_ranks) return ring_barrier(call);
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
  if (size == 1) return;
  if (size <= few_ranks || bytes / piece_bytes >= static_cast<std::size_t>(size))
    return ring_broadcast(call, {elements.data, bytes}, root);
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
  ring_reduce(call, elements, chunks, reduce);
  ring_gather(call, elements, chunks);
}

/// Partial sums of all chunks pass through `output`, each over the one before, which is sent on meanwhile; the last one
/// to do so is this rank's own.
void reduce_scatter(const Call& call, Elements input, std::byte* output, std::size_t count, Reduce reduce) {
  const Ring ring(call);
  const std::size_t bytes = count * input.element_bytes;
  std::vector<std::byte> scratch(std::min(bytes, added_at_once));
  for (std::size_t step = 0; step < ring.steps(); ++step) {
    const auto own = bytes_of(input, {ring.chunk(step + 2) * count, count});
    const auto first = bytes_of(input, {ring.chunk(step + 1) * count, count});
    const auto add = [&](std::size_t begin, std::span<const std::byte> piece) {
      reduce(output + begin, own.data() + begin, piece.data(), piece.size() / input.element_bytes);
    };
    call.mesh.exchange(slot_of(call), step == 0 ? first : std::span(output, bytes),
                       {bytes, scratch, add, step > 0}, call.deadline);
  }
}

void all_gather(const Call& call, Elements elements, const std::vector<Chunk>& chunks) {
  ring_gather(call, elements, chunks);
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
