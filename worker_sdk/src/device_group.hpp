// A process group for buffers on devices: what the communicator of an accelerator (NCCL's, say) does not bring along.
// Operations have the names and numbers that other groups give them, an end in bounded time, and a broken group says why
// at every later call.
//
// A communicator tells when an operation has ended, but nothing tells of a peer that is lost or of time that is over: a
// thread looks every `watch_interval` while operations are queued, and only then.
#pragma once

#include <chrono>
#include <memory>

#include "muster/worker/accelerator.hpp"
#include "worker_sdk/src/key_value_store.hpp"
#include "worker_sdk/src/rank_names.hpp"

namespace muster::worker {

struct DeviceGroupOptions {
  std::string prefix;  ///< of this group's keys in the store
  RankNames names;
  int rank = 0;
  int size = 1;
  std::chrono::milliseconds join_timeout{300'000};
  std::chrono::milliseconds collective_timeout{600'000};  ///< from when it is the oldest that is queued
  std::chrono::milliseconds watch_interval{50};
};

/// Collectives only: send() and receive() throw std::logic_error. All ranks make it together; throws CollectiveError
/// when it cannot be formed in time. `store` may be null in a group of one. The accelerator must outlive it.
std::unique_ptr<ProcessGroup> make_device_group(Accelerator& accelerator,
                                                std::shared_ptr<KeyValueStore> store,
                                                DeviceGroupOptions options);

}  // namespace muster::worker
