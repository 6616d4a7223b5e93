// A device with memory of its own, and what connects those of several ranks: what a worker brings along so that its
// process groups take buffers of Place::device.
//
//   auto worker = Worker::join({.accelerator = &mine});
//   worker.process_group().all_reduce({pointer, count, ElementType::f32, Place::device}, ReduceOp::average)->wait();
//
// Buffers of the host's memory go through the same groups as ever. The group does the rest for either kind: the order of
// calls, deadlines, names in errors, and how the ranks find each other.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "muster/worker/process_group.hpp"

namespace muster::worker {

/// Why a call of an accelerator failed: "what: why". Nothing: it went well.
using Fault = std::optional<std::string>;

/// One rank's end of a connection between devices. Operations are queued: each takes effect after all that was queued
/// on the device when it was called, and one after the other in the order of the calls. One thread calls them; `fault`
/// and `abort` may be called from another one at the same time.
class Communicator {
 public:
  virtual ~Communicator() = default;

  /// Arguments are right, and lie on the device. For what each does see ProcessGroup.
  virtual Fault broadcast(Buffer buffer, int root) = 0;
  virtual Fault all_reduce(Buffer buffer, ReduceOp op) = 0;
  virtual Fault reduce_scatter(Buffer input, Buffer output, ReduceOp op) = 0;
  virtual Fault all_gather(Buffer input, Buffer output) = 0;
  virtual Fault all_gather_uneven(Buffer input, Buffer output, std::span<const std::size_t> counts) = 0;

  /// `done` is called once, from any thread, when all that was queued before has ended. It must not throw and must not
  /// call the device. It may never be called after a fault or abort().
  virtual Fault when_done(std::function<void()> done) = 0;
  /// What has gone wrong by itself since: a peer is lost, the device has failed.
  virtual Fault fault() = 0;
  /// Ends what is queued, here and, by and by, on the other ranks. Calls that are under way return.
  virtual void abort() = 0;
};

class Accelerator {
 public:
  virtual ~Accelerator() = default;

  virtual std::string name() const = 0;  ///< "cuda:0 (NVIDIA H200)"
  /// What its communicators are: "nccl".
  virtual std::string backend() const = 0;

  /// After all that was queued on the device; done when they return. From any thread.
  virtual Fault copy_in(void* device, const void* host, std::size_t bytes) = 0;
  virtual Fault copy_out(void* host, const void* device, std::size_t bytes) = 0;

  /// One rank makes a name for a connection, of at most max_connection_id_bytes bytes, and all of them connect by it.
  virtual Fault make_connection_id(std::string& id) = 0;
  /// Blocks until all `size` ranks have come, no longer than `timeout`.
  virtual Fault connect(const std::string& id, int rank, int size, std::chrono::milliseconds timeout,
                        std::unique_ptr<Communicator>& communicator) = 0;
};

constexpr std::size_t max_connection_id_bytes = 1024;

}  // namespace muster::worker
