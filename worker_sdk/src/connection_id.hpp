// How the ranks of a group come by the id of their devices' connection: rank 0 makes it and leaves it in the store,
// where the others wait for it.
//
//   value = "id:" bytes | "failed:" text      under the key PREFIX/connection-id
#pragma once

#include <chrono>
#include <string>

#include "muster/worker/accelerator.hpp"
#include "worker_sdk/src/key_value_store.hpp"
#include "worker_sdk/src/rank_names.hpp"

namespace muster::worker {

struct IdExchange {
  std::string prefix;  ///< of this group's keys in the store
  RankNames names;
  int rank = 0;  ///< in the group
  std::chrono::milliseconds timeout{300'000};
};

/// The id, the same on every rank. Throws CollectiveError that names rank 0 of the group where it left none in time, or
/// has said why it could not make one.
std::string exchange_connection_id(Accelerator& accelerator, KeyValueStore& store,
                                   const IdExchange& exchange);

}  // namespace muster::worker
