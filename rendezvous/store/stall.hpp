// Who keeps the others waiting: the sentence that a worker store can say about a round that does not get on.
// Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rendezvous/store/engine.hpp"

namespace muster::rendezvous {

/// What is known of the round besides its store.
struct StoreRound {
  struct Worker {
    int rank = 0;
    int pid = 0;
  };
  int round = 0;
  int world_size = 1;
  std::vector<Worker> local_workers;  ///< on the host that serves the store
};

struct StallView {
  StoreDiagnosis diagnosis;
  std::string own_address;    ///< of the store; a client with this or a loopback address is a local one
  unsigned periods_long = 1;  ///< a wait of fewer periods is not worth a word
  bool late = false;          ///< the round is old enough that all should have connected
};

/// "ranks 0-6 wait for rank 7's gloo address; rank 7 (pid 4711) has not connected". Nothing while nobody waits
/// for long and everybody is there, and as long as no worker at all has connected: not every program uses the
/// store.
std::optional<std::string> describe_stall(const StallView& view, const StoreRound& round);

}  // namespace muster::rendezvous
