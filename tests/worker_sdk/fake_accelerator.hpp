// An accelerator for tests of the groups above it: "device" memory is the host's, a communicator does what it is told.
#pragma once

#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "muster/worker/accelerator.hpp"

namespace muster::worker::test {

/// Queues nothing: an operation has ended when the test says so.
class FakeCommunicator final : public Communicator {
 public:
  struct State {
    std::mutex mutex;
    std::vector<std::string> calls;
    std::vector<std::function<void()>> waiting;
    Fault next_call;  ///< of the next operation
    Fault found;      ///< what fault() says
    bool aborted = false;

    /// The oldest operation ends.
    void end_oldest() {
      std::function<void()> done;
      {
        const std::lock_guard lock(mutex);
        done = waiting.at(0);
        waiting.erase(waiting.begin());
      }
      done();
    }
  };

  explicit FakeCommunicator(std::shared_ptr<State> state) : state_(std::move(state)) {}
  Fault broadcast(Buffer, int) override { return call("broadcast"); }
  Fault all_reduce(Buffer, ReduceOp) override { return call("all_reduce"); }
  Fault reduce_scatter(Buffer, Buffer, ReduceOp) override { return call("reduce_scatter"); }
  Fault all_gather(Buffer, Buffer) override { return call("all_gather"); }
  Fault all_gather_uneven(Buffer, Buffer, std::span<const std::size_t>) override {
    return call("all_gather_uneven");
  }
  Fault when_done(std::function<void()> done) override {
    const std::lock_guard lock(state_->mutex);
    state_->waiting.push_back(std::move(done));
    return {};
  }
  Fault fault() override {
    const std::lock_guard lock(state_->mutex);
    return state_->found;
  }
  void abort() override {
    const std::lock_guard lock(state_->mutex);
    state_->aborted = true;
  }

 private:
  Fault call(const char* name) {
    const std::lock_guard lock(state_->mutex);
    state_->calls.emplace_back(name);
    return std::exchange(state_->next_call, std::nullopt);
  }

  std::shared_ptr<State> state_;
};

class FakeAccelerator final : public Accelerator {
 public:
  std::string name() const override { return "fake:0"; }
  std::string backend() const override { return "fake"; }
  Fault copy_in(void* device, const void* host, std::size_t bytes) override {
    if (copy_fault) return copy_fault;
    std::memcpy(device, host, bytes);
    ++copies_in;
    return {};
  }
  Fault copy_out(void* host, const void* device, std::size_t bytes) override {
    if (copy_fault) return copy_fault;
    std::memcpy(host, device, bytes);
    ++copies_out;
    return {};
  }
  Fault make_connection_id(std::string& id) override {
    if (id_fault) return id_fault;
    id = id_to_make;
    return {};
  }
  Fault connect(const std::string& id, int, int, std::chrono::milliseconds,
                std::unique_ptr<Communicator>& communicator) override {
    connected_by = id;
    if (connect_fault) return connect_fault;
    communicator = std::make_unique<FakeCommunicator>(state);
    return {};
  }

  std::shared_ptr<FakeCommunicator::State> state = std::make_shared<FakeCommunicator::State>();
  std::string id_to_make = std::string("an id\0with a zero", 17);
  std::string connected_by;
  Fault id_fault;
  Fault connect_fault;
  Fault copy_fault;
  int copies_in = 0;
  int copies_out = 0;
};

}  // namespace muster::worker::test
