#include "worker_sdk/src/device_group.hpp"

#include <fmt/format.h>

#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>

#include "worker_sdk/src/arguments.hpp"
#include "worker_sdk/src/connection_id.hpp"
#include "worker_sdk/src/in_flight.hpp"
#include "worker_sdk/src/last_words.hpp"
#include "worker_sdk/src/operation.hpp"

namespace muster::worker {
namespace {

using std::chrono::steady_clock;

/// What broke the group: an operation that ran out of time, or a fault.
struct Cause {
  std::string operation;
  Fault fault;  ///< none: the time was over
};

class DeviceGroup : public ProcessGroup {
 public:
  DeviceGroup(std::unique_ptr<Communicator> communicator, std::string backend,
              std::shared_ptr<KeyValueStore> store, DeviceGroupOptions options)
      : options_(std::move(options)),
        backend_(std::move(backend)),
        store_(std::move(store)),
        communicator_(std::move(communicator)) {
    const SignalsBlocked blocked;
    watch_ = std::thread([this] { watch(); });
  }

  ~DeviceGroup() override {
    // Whoever destroys a group with work under way no longer waits for it.
    if (!flights_->idle()) abort();
    flights_->close();
    watch_.join();
  }

  int rank() const override { return options_.rank; }
  int size() const override { return options_.size; }
  std::string backend() const override { return backend_; }

  std::shared_ptr<Work> broadcast(Buffer buffer, int root) override {
    check_rank("root", root, size());
    return start("broadcast", broadcast_text(options_.names(root), buffer), {},
                 [&] { return communicator_->broadcast(buffer, root); });
  }
  std::shared_ptr<Work> all_reduce(Buffer buffer, ReduceOp op) override {
    check_reduce(buffer, op);
    return start("all_reduce", reduce_text(buffer, op), {},
                 [&] { return communicator_->all_reduce(buffer, op); });
  }
  std::shared_ptr<Work> reduce_scatter(Buffer input, Buffer output, ReduceOp op) override {
    check_reduce(input, op);
    check_parts("reduce_scatter", input, output, size());
    return start("reduce_scatter", reduce_text(output, op), {},
                 [&] { return communicator_->reduce_scatter(input, output, op); });
  }
  std::shared_ptr<Work> all_gather(Buffer input, Buffer output) override {
    check_parts("all_gather", output, input, size());
    return start("all_gather", text_of(output), {}, [&] { return communicator_->all_gather(input, output); });
  }
  std::shared_ptr<Work> all_gather_uneven(Buffer input, Buffer output,
                                          std::span<const std::size_t> counts) override {
    check_uneven(input, output, counts, rank(), size());
    return start("all_gather_uneven", uneven_text(output, counts), counts,
                 [&] { return communicator_->all_gather_uneven(input, output, counts); });
  }
  std::shared_ptr<Work> barrier() override { throw std::logic_error("a device group has no barrier"); }
  std::shared_ptr<Work> send(Buffer, int) override { throw std::logic_error("a device group has no send"); }
  std::shared_ptr<Work> receive(Buffer, int) override {
    throw std::logic_error("a device group has no receive");
  }

  void abort() override {
    {
      const std::lock_guard lock(mutex_);
      if (!why_) why_ = "this rank has closed it";
      communicator_->abort();
    }
    fail_all();
  }

 private:
  std::shared_ptr<Work> start(std::string_view kind, const std::string& details,
                              std::span<const std::size_t> counts, const std::function<Fault()>& queue) {
    const auto operation = collective(kind, ++sequence_, details, counts, options_.names.group);
    auto work = flights_->add(operation.text);
    if (!work) return broken(operation.text);
    auto fault = queue();
    // The callback may come when this group is gone; it keeps what it needs alive.
    if (!fault) fault = communicator_->when_done([flights = flights_] { flights->finish_oldest(); });
    if (fault) break_because({.operation = operation.text, .fault = fault});
    return work;
  }

  std::shared_ptr<Work> broken(const std::string& operation) const {
    auto work = std::make_shared<PendingWork>();
    work->finish(std::make_exception_ptr(CollectiveError(operation + ": the group is broken: " + why())));
    return work;
  }

  std::string why() const {
    const std::lock_guard lock(mutex_);
    return why_.value_or("it has been closed");
  }

  void watch() {
    while (flights_->wait_for_some()) {
      const auto oldest = flights_->oldest();
      if (!oldest) continue;
      const bool too_late = steady_clock::now() - oldest->since >= options_.collective_timeout;
      if (auto fault = communicator_->fault())
        break_because({.operation = oldest->operation, .fault = std::move(fault)});
      else if (too_late)
        break_because({.operation = oldest->operation, .fault = {}});
      flights_->wait_until_idle(options_.watch_interval);
    }
  }

  /// The first cause counts. Takes up to a second, in which the other ranks' last words are waited for.
  void break_because(const Cause& cause) {
    {
      const std::lock_guard lock(mutex_);
      if (!why_) why_ = explain(cause);
    }
    fail_all();
  }

  void fail_all() { flights_->fail_all(std::make_exception_ptr(CollectiveError(why()))); }

  std::string explain(const Cause& cause) {
    Failure failure;
    failure.rank = options_.names(rank());
    failure.own = {.operation = cause.operation, .timed_out = !cause.fault, .lost = {}};
    failure.timeout = options_.collective_timeout;
    failure.waited_for = options_.names(rank());
    if (store_ && size() > 1) {
      LastWordsBoard board(*store_, options_.prefix, options_.names);
      std::vector<int> others;
      for (int peer = 0; peer < size(); ++peer)
        if (peer != rank()) others.push_back(peer);
      try {
        board.leave(rank(), failure.own);
        communicator_->abort();
        if (!cause.fault) board.collect(others, failure);
        failure.asked = board.named(others);
      } catch (const CollectiveError& no_store) {
        communicator_->abort();
        return fmt::format("{} {} (the other ranks could not be asked: {})", cause.operation,
                           cause.fault.value_or("timed out"), no_store.what());
      }
    } else {
      communicator_->abort();
    }
    return cause.fault ? fmt::format("{}: {}", cause.operation, *cause.fault) : sentence(failure);
  }

  const DeviceGroupOptions options_;
  const std::string backend_;
  const std::shared_ptr<KeyValueStore> store_;
  const std::unique_ptr<Communicator> communicator_;
  const std::shared_ptr<InFlight> flights_ = std::make_shared<InFlight>();
  mutable std::mutex mutex_;
  std::optional<std::string> why_;
  std::uint64_t sequence_ = 0;
  std::thread watch_;
};

}  // namespace

std::unique_ptr<ProcessGroup> make_device_group(Accelerator& accelerator,
                                                std::shared_ptr<KeyValueStore> store,
                                                DeviceGroupOptions options) {
  const auto deadline = steady_clock::now() + options.join_timeout;
  std::string id;
  if (options.size == 1) {
    if (const auto fault = accelerator.make_connection_id(id)) throw CollectiveError(*fault);
  } else {
    id = exchange_connection_id(accelerator, *store,
                                {.prefix = options.prefix,
                                 .names = options.names,
                                 .rank = options.rank,
                                 .timeout = options.join_timeout});
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now());
  std::unique_ptr<Communicator> communicator;
  if (const auto fault = accelerator.connect(id, options.rank, options.size,
                                             std::max(left, std::chrono::milliseconds(1)), communicator))
    throw CollectiveError(*fault);
  return std::make_unique<DeviceGroup>(std::move(communicator), accelerator.backend(), std::move(store),
                                       std::move(options));
}

}  // namespace muster::worker
