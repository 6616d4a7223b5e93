#include "worker_sdk/src/checked_group.hpp"

#include <fmt/format.h>

#include <optional>
#include <stdexcept>

#include "worker_sdk/src/arguments.hpp"
#include "worker_sdk/src/calls.hpp"
#include "worker_sdk/src/lane.hpp"

namespace muster::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Of a key that a rank has written long ago, or never.
constexpr milliseconds latest_call_timeout{50};

/// For a call that is made later: with what the buffer is called.
class Kept {
 public:
  explicit Kept(const Buffer& buffer) : buffer_(buffer), what_(buffer.what) {}
  Buffer get() const { return buffer_.named(what_); }

 private:
  Buffer buffer_;
  std::string what_;
};

class CheckedGroup : public ProcessGroup {
 public:
  CheckedGroup(std::unique_ptr<ProcessGroup> group, std::unique_ptr<ProcessGroup> side,
               std::shared_ptr<KeyValueStore> store, CheckOptions options)
      : options_(std::move(options)),
        store_(std::move(store)),
        group_(std::move(group)),
        side_(std::move(side)) {}

  ~CheckedGroup() override {
    if (!lane_.idle()) abort();
  }

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  std::string backend() const override { return group_->backend(); }

  std::shared_ptr<Work> broadcast(Buffer buffer, int root) override {
    check_memory(buffer, options_.takes);
    check_rank("root", root, size());
    return queue("broadcast", broadcast_text(options_.names(root), buffer), {},
                 [this, kept = Kept(buffer), root] { return group_->broadcast(kept.get(), root); });
  }
  std::shared_ptr<Work> all_reduce(Buffer buffer, ReduceOp op) override {
    check_memory(buffer, options_.takes);
    check_reduce(buffer, op);
    return queue("all_reduce", reduce_text(buffer, op), {},
                 [this, kept = Kept(buffer), op] { return group_->all_reduce(kept.get(), op); });
  }
  std::shared_ptr<Work> reduce_scatter(Buffer input, Buffer output, ReduceOp op) override {
    check_memory(input, output, options_.takes);
    check_reduce(input, op);
    check_parts("reduce_scatter", input, output, size());
    return queue("reduce_scatter", reduce_text(output, op), {},
                 [this, input = Kept(input), output = Kept(output), op] {
                   return group_->reduce_scatter(input.get(), output.get(), op);
                 });
  }
  std::shared_ptr<Work> all_gather(Buffer input, Buffer output) override {
    check_memory(input, output, options_.takes);
    check_parts("all_gather", output, input, size());
    return queue("all_gather", text_of(output), {}, [this, input = Kept(input), output = Kept(output)] {
      return group_->all_gather(input.get(), output.get());
    });
  }
  std::shared_ptr<Work> all_gather_uneven(Buffer input, Buffer output,
                                          std::span<const std::size_t> counts) override {
    check_memory(input, output, options_.takes);
    check_uneven(input, output, counts, rank(), size());
    const std::vector<std::size_t> kept(counts.begin(), counts.end());
    return queue("all_gather_uneven", uneven_text(output, counts), counts,
                 [this, input = Kept(input), output = Kept(output), kept] {
                   return group_->all_gather_uneven(input.get(), output.get(), kept);
                 });
  }
  std::shared_ptr<Work> barrier() override {
    return queue("barrier", "", {}, [this] { return group_->barrier(); });
  }
  std::shared_ptr<Work> send(Buffer buffer, int destination) override {
    check_memory(buffer, options_.takes);
    return group_->send(buffer, destination);
  }
  std::shared_ptr<Work> receive(Buffer buffer, int source) override {
    check_memory(buffer, options_.takes);
    return group_->receive(buffer, source);
  }

  void abort() override {
    side_->abort();
    group_->abort();
  }

 private:
  using Start = std::function<std::shared_ptr<Work>()>;

  std::shared_ptr<Work> queue(std::string_view name, const std::string& details,
                              std::span<const std::size_t> counts, Start start) {
    const auto sequence = ++sequence_;
    auto operation = collective(name, sequence, details, counts, options_.names.group);
    auto work = std::make_shared<PendingWork>();
    lane_.push([this, work, sequence, operation = std::move(operation), start = std::move(start)] {
      work->finish(run(sequence, operation, start));
    });
    return work;
  }

  std::exception_ptr run(std::uint64_t sequence, const Operation& operation, const Start& start) {
    try {
      if (why_) throw CollectiveError(operation.text + ": the group is broken: " + *why_);
      check(sequence, operation);
      start()->wait();
      return nullptr;
    } catch (const CollectiveError& error) {
      if (!why_) why_ = error.what();
      return std::current_exception();
    } catch (const std::bad_alloc&) {
      return std::current_exception();
    }
  }

  void check(std::uint64_t sequence, const Operation& operation) {
    store_->set(key(rank()), encode_latest({sequence, operation.text}));
    auto own = encode_call(operation);
    std::vector<std::uint8_t> all(own.size() * static_cast<std::size_t>(size()));
    exchange(sequence, operation, own, all);
    if (const auto calls = disagreement(all, options_.names))
      throw CollectiveError(fmt::format(
          "the ranks make different calls: {}; all ranks of a group must make the same, in the same order",
          *calls));
  }

  void exchange(std::uint64_t sequence, const Operation& operation, std::span<std::uint8_t> own,
                std::span<std::uint8_t> all) {
    const auto start = steady_clock::now();
    const auto work = side_->all_gather(buffer_of(own), buffer_of(all));
    try {
      if (work->wait_for(options_.slow_after)) return;
      const std::string missing = absent(sequence);
      const std::string slow = missing.empty() ? "all ranks have called it, not all have answered" : missing;
      const auto waited = [&] { return std::chrono::duration<double>(steady_clock::now() - start).count(); };
      say(fmt::format("{} has waited {:.1f} s: {}", operation.text, waited(), slow));
      work->wait();
      say(fmt::format("{} goes on after {:.1f} s", operation.text, waited()));
    } catch (const CollectiveError& error) {
      const auto who = absent(sequence);
      throw CollectiveError(
          fmt::format("{}: {} ({})", operation.text, who.empty() ? "a rank is lost" : who, error.what()));
    }
  }

  std::string absent(std::uint64_t sequence) {
    std::vector<std::optional<LatestCall>> latest;
    for (int r = 0; r < size(); ++r) {
      const auto text = store_->get(key(r), latest_call_timeout);
      latest.push_back(text ? decode_latest(*text) : std::nullopt);
    }
    return absent_text(latest, sequence, options_.names);
  }

  void say(const std::string& text) const {
    if (options_.say) options_.say(fmt::format("rank {}: {}", options_.names(rank()), text));
  }

  std::string key(int rank) const { return fmt::format("{}/latest-call/{}", options_.prefix, rank); }

  const CheckOptions options_;
  const std::shared_ptr<KeyValueStore> store_;
  const std::unique_ptr<ProcessGroup> group_;
  const std::unique_ptr<ProcessGroup> side_;
  std::optional<std::string> why_;  ///< the lane's: what the first failure was
  std::uint64_t sequence_ = 0;
  Lane lane_;  // last, so that its thread ends before what it uses
};

}  // namespace

std::unique_ptr<ProcessGroup> make_checked_group(std::unique_ptr<ProcessGroup> group,
                                                 std::unique_ptr<ProcessGroup> side,
                                                 std::shared_ptr<KeyValueStore> store, CheckOptions options) {
  return std::make_unique<CheckedGroup>(std::move(group), std::move(side), std::move(store),
                                        std::move(options));
}

}  // namespace muster::worker
