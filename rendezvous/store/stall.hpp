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
  struct Node {
    std::string name;
    std::string address;  ///< where other nodes reach it; its workers most likely come from there
    int first_rank = 0;
    int workers = 0;
  };
  int round = 0;
  int world_size = 1;
  std::vector<Worker> local_workers;  ///< on the host that serves the store
  std::vector<Node> nodes = {};  ///< by their first ranks; none: there is one node, or they are not known
};

struct StallView {
  StoreDiagnosis diagnosis;
  std::string own_address;    ///< of the store; a client with this or a loopback address is a local one
  unsigned periods_long = 1;  ///< a wait of fewer periods is not worth a word
  bool late = false;          ///< the round is old enough that all should have connected
};

/// "ranks 0-6 wait for rank 7's gloo address; rank 7 (node b at 10.0.0.2) has not connected". Nothing while nobody waits
/// for long and everybody is there, and as long as no worker at all has connected: not every program uses the
/// store.
std::optional<std::string> describe_stall(const StallView& view, const StoreRound& round);

/// Joined workers that are connected. Connections with one process id and address are one.
std::int64_t joined_now(const StoreDiagnosis& diagnosis);

/// "6 workers joined a world of 2: is another job using this port?". Nothing if they are no more than that.
std::optional<std::string> describe_crowd(std::int64_t joined, int world_size);

}  // namespace muster::rendezvous
