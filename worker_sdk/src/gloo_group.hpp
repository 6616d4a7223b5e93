// A process group for CPUs, over Gloo's TCP transport and rings of its own.
#pragma once

#include <chrono>
#include <memory>

#include "muster/worker/process_group.hpp"
#include "worker_sdk/src/key_value_store.hpp"
#include "worker_sdk/src/mesh.hpp"

namespace muster::worker {

struct GlooOptions {
  MeshOptions mesh;
  std::chrono::milliseconds collective_timeout{600'000};  ///< from the start of each operation on this rank
};

/// At least two ranks. Throws CollectiveError when it cannot be formed. The store is used to form the group
/// and, after a failure, to find out whose it was.
std::unique_ptr<ProcessGroup> make_gloo_group(const GlooOptions& options,
                                              std::shared_ptr<KeyValueStore> store);

}  // namespace muster::worker
