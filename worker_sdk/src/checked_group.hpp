// A process group that checks, before each collective, that all ranks are about to make the same one
// (MUSTER_DEBUG=collectives). For any backend.
//
// Without it, ranks that disagree wait for each other until the time-out. With it, the n-th collective of a rank begins
// with an exchange of what each of them is about to call as its n-th. If these differ, every rank fails at once with
// the same sentence, which names the ranks and their calls. A rank that does not come is named on stderr after
// `slow_after`, with its last call, while the others wait on; if it has left the group, they fail at once and say so.
//
// Each rank keeps its latest call in the store, where the others find it when they have waited too long. The exchange
// runs in a group of its own, so that it shares no order with the operations that it checks. It costs a round trip
// for each collective. Sends and receives are passed through.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "muster/worker/process_group.hpp"
#include "worker_sdk/src/arguments.hpp"
#include "worker_sdk/src/key_value_store.hpp"
#include "worker_sdk/src/rank_names.hpp"

namespace muster::worker {

struct CheckOptions {
  std::string prefix;  ///< of this group's keys in the store
  RankNames names;
  Takes takes = Takes::host;  ///< what `group` does
  std::chrono::milliseconds slow_after{10'000};
  /// Gets one line for each rank that keeps the others waiting.
  std::function<void(const std::string&)> say;
};

/// `side` has the same ranks as `group`, and nobody else uses it.
std::unique_ptr<ProcessGroup> make_checked_group(std::unique_ptr<ProcessGroup> group,
                                                 std::unique_ptr<ProcessGroup> side,
                                                 std::shared_ptr<KeyValueStore> store, CheckOptions options);

}  // namespace muster::worker
