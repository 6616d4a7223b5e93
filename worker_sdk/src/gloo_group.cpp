#include "worker_sdk/src/gloo_group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>

#include "worker_sdk/src/arguments.hpp"
#include "worker_sdk/src/collectives.hpp"
#include "worker_sdk/src/lane.hpp"
#include "worker_sdk/src/last_words.hpp"
#include "worker_sdk/src/operation.hpp"

namespace muster::worker {
namespace {

using std::chrono::steady_clock;

/// The one place where a group breaks: what the first failure was, for all that comes after it.
class Breakage {
 public:
  Breakage(const GlooOptions& options, std::shared_ptr<KeyValueStore> store)
      : options_(options), store_(std::move(store)) {}

  std::optional<std::string> why() const {
    const std::lock_guard lock(mutex_);
    return why_;
  }

  /// The error for `operation`, which ended with `error`. The first one finds out whose failure it is; that
  /// takes up to a second.
  CollectiveError report(Mesh& mesh, const Operation& operation, const MessageError& error,
                         const std::vector<int>& others) {
    const std::lock_guard lock(mutex_);
    if (why_) return CollectiveError(operation.text + ": the group is broken: " + *why_);
    Failure failure;
    failure.rank = names()(options_.mesh.rank);
    failure.own = {.operation = operation.text, .timed_out = error.timed_out, .lost = {}};
    failure.timeout = options_.collective_timeout;
    failure.waited_for = names()(error.peer);
    // A time-out has closed every connection, here too: nobody is known to be lost then.
    const auto asked = error.timed_out ? others : mesh.closed_peers();
    LastWordsBoard board(*store_, options_.mesh.prefix, names());
    failure.asked = board.named(asked);
    if (!error.timed_out) failure.own.lost = failure.asked;
    std::string store_trouble;
    try {
      board.leave(options_.mesh.rank, failure.own);
      mesh.close();
      board.collect(asked, failure);
    } catch (const CollectiveError& no_store) {
      mesh.close();
      failure.asked = {failure.waited_for};
      store_trouble = fmt::format(" (the other ranks could not be asked: {})", no_store.what());
    }
    why_ = sentence(failure) + store_trouble;
    return CollectiveError(*why_);
  }

  void closed() {
    const std::lock_guard lock(mutex_);
    if (!why_) why_ = "this rank has closed it";
  }

 private:
  const RankNames& names() const { return options_.mesh.names; }

  const GlooOptions options_;
  const std::shared_ptr<KeyValueStore> store_;
  mutable std::mutex mutex_;
  std::optional<std::string> why_;
};

class GlooGroup : public ProcessGroup {
 public:
  GlooGroup(const GlooOptions& options, std::shared_ptr<KeyValueStore> store)
      : options_(options), breakage_(options, store), mesh_(options.mesh, *store) {
    for (int peer = 0; peer < size(); ++peer)
      if (peer != rank()) everyone_else_.push_back(peer);
  }

  ~GlooGroup() override {
    // Whoever destroys a group with work under way no longer waits for it; its peers learn so at once.
    const auto busy = [](auto& lanes) {
      return std::any_of(lanes.begin(), lanes.end(), [](auto& lane) { return !lane.second.lane.idle(); });
    };
    if (!collectives_.idle() || busy(sends_) || busy(receives_)) abort();
  }

  int rank() const override { return options_.mesh.rank; }
  int size() const override { return options_.mesh.size; }
  std::string backend() const override { return "gloo"; }

  std::shared_ptr<Work> broadcast(Buffer buffer, int root) override {
    check_memory(buffer, Takes::host);
    check_rank("root", root, size());
    return collect("broadcast", broadcast_text(name(root), buffer),
                   [=](const Call& call) { worker::broadcast(call, elements(buffer), buffer.count, root); });
  }

  std::shared_ptr<Work> all_reduce(Buffer buffer, ReduceOp op) override {
    check_memory(buffer, Takes::host);
    check_reduce(buffer, op);
    return collect("all_reduce", reduce_text(buffer, op), [=, n = size()](const Call& call) {
      worker::all_reduce(call, elements(buffer), buffer.count, reduce_function(buffer.type, op));
      if (op == ReduceOp::average) divide(buffer.data, buffer.count, buffer.type, n);
    });
  }

  std::shared_ptr<Work> reduce_scatter(Buffer input, Buffer output, ReduceOp op) override {
    check_memory(input, output, Takes::host);
    check_reduce(input, op);
    check_parts("reduce_scatter", input, output, size());
    return collect("reduce_scatter", reduce_text(output, op), [=, n = size()](const Call& call) {
      worker::reduce_scatter(call, elements(input), elements(output).data, output.count,
                             reduce_function(input.type, op));
      if (op == ReduceOp::average) divide(output.data, output.count, output.type, n);
    });
  }

  std::shared_ptr<Work> all_gather(Buffer input, Buffer output) override {
    check_memory(input, output, Takes::host);
    check_parts("all_gather", output, input, size());
    const std::vector<std::size_t> counts(static_cast<std::size_t>(size()), input.count);
    return gather("all_gather", text_of(output), input, output, counts);
  }

  std::shared_ptr<Work> all_gather_uneven(Buffer input, Buffer output,
                                          std::span<const std::size_t> counts) override {
    check_memory(input, output, Takes::host);
    check_uneven(input, output, counts, rank(), size());
    return gather("all_gather_uneven", uneven_text(output, counts), input, output, counts);
  }

  std::shared_ptr<Work> barrier() override {
    return collect("barrier", "", [](const Call& call) { worker::barrier(call); });
  }

  std::shared_ptr<Work> send(Buffer buffer, int destination) override {
    check_memory(buffer, Takes::host);
    check_peer("destination", destination);
    auto& stream = sends_[destination];
    return queue(stream.lane,
                 message(++stream.sequence, name(rank()), name(destination), buffer, Direction::send),
                 {destination},
                 [=](const Call& call) { worker::send(call, elements(buffer), buffer.count, destination); });
  }

  std::shared_ptr<Work> receive(Buffer buffer, int source) override {
    check_memory(buffer, Takes::host);
    check_peer("source", source);
    auto& stream = receives_[source];
    return queue(stream.lane,
                 message(++stream.sequence, name(source), name(rank()), buffer, Direction::receive), {source},
                 [=](const Call& call) { worker::receive(call, elements(buffer), buffer.count, source); });
  }

  void abort() override {
    breakage_.closed();
    mesh_.close();
  }

 private:
  using Body = std::function<void(const Call&)>;
  /// Messages between two ranks in one direction: they neither wait for collectives nor for other peers.
  struct Stream {
    std::uint64_t sequence = 0;
    Lane lane;
  };

  static Elements elements(const Buffer& buffer) {
    return {static_cast<std::byte*>(buffer.data), size_of(buffer.type)};
  }

  int name(int rank) const { return options_.mesh.names(rank); }

  void check_peer(const char* what, int peer) const {
    check_rank(what, peer, size());
    if (peer == rank()) throw std::invalid_argument(fmt::format("{} {}: that is this rank", what, peer));
  }

  std::shared_ptr<Work> collect(std::string_view kind, const std::string& text, Body body,
                                std::span<const std::size_t> counts = {}) {
    return queue(collectives_, collective(kind, ++sequence_, text, counts, options_.mesh.names.group),
                 everyone_else_, std::move(body));
  }

  std::shared_ptr<Work> gather(std::string_view kind, const std::string& text, Buffer input, Buffer output,
                               std::span<const std::size_t> counts) {
    std::vector<Chunk> chunks;
    for (auto count : counts)
      chunks.push_back({chunks.empty() ? 0 : chunks.back().begin + chunks.back().count, count});
    const auto body = [=, own = static_cast<std::size_t>(rank())](const Call& call) {
      const auto all = elements(output);
      if (input.count > 0)
        std::memcpy(all.data + chunks[own].begin * all.element_bytes, input.data, input.bytes());
      worker::all_gather(call, all, chunks);
    };
    return collect(kind, text, body, counts);
  }

  std::shared_ptr<Work> queue(Lane& lane, Operation operation, std::vector<int> others, Body body) {
    auto work = std::make_shared<PendingWork>();
    lane.push([this, work, operation = std::move(operation), others = std::move(others),
               body = std::move(body)] { work->finish(run(operation, others, body)); });
    return work;
  }

  std::exception_ptr run(const Operation& operation, const std::vector<int>& others, const Body& body) {
    if (const auto why = breakage_.why())
      return std::make_exception_ptr(CollectiveError(operation.text + ": the group is broken: " + *why));
    try {
      body(Call{mesh_, operation.tag, steady_clock::now() + options_.collective_timeout});
      return nullptr;
    } catch (const MessageError& error) {
      return std::make_exception_ptr(breakage_.report(mesh_, operation, error, others));
    } catch (const std::bad_alloc&) {
      return std::current_exception();
    }
  }

  const GlooOptions options_;
  std::vector<int> everyone_else_;
  Breakage breakage_;
  Mesh mesh_;
  std::uint64_t sequence_ = 0;
  // Last, so that their threads end before what they use.
  Lane collectives_;
  std::map<int, Stream> sends_;
  std::map<int, Stream> receives_;
};

}  // namespace

std::unique_ptr<ProcessGroup> make_gloo_group(const GlooOptions& options,
                                              std::shared_ptr<KeyValueStore> store) {
  return std::make_unique<GlooGroup>(options, std::move(store));
}

}  // namespace muster::worker
