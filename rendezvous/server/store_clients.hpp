// From which addresses the workers of a round may come to its store. Pure.
//
// A node's workers leave by whatever address of its machine leads to the store, and no other node can know which
// one that will be; so all of them count. What cannot be known is what an address translation on the way makes of
// them. Where there are signs of one, or a node does not say what it has, the store stays open to all: refusing a
// node of the round would end the job, and letting a stranger in is what every such store does without this list.
#pragma once

#include <string>
#include <vector>

namespace muster::rendezvous {

struct NodeAddresses {
  std::string offered;           ///< where the other nodes reach it
  std::string seen_from;         ///< where its connection to the daemon comes from
  std::vector<std::string> own;  ///< of its machine's interfaces; none: it does not say
};

/// Each once, in order. None, which means any: a node does not say what it has, or is reached at or seen from an
/// address that it does not have (loopback aside), or they are too many for one message.
std::vector<std::string> store_clients(const std::vector<NodeAddresses>& nodes);

}  // namespace muster::rendezvous
