// Who gets which ranks. Three rules, the stronger first:
//   1. a node's own wish (--node-rank), if it is below the number of nodes;
//   2. the endpoint's host is group rank 0;
//   3. everybody keeps the place it had; who cannot takes a free one, former members before new nodes, in the
//      order of their old places, then of their arrival.
// So a replacement finds exactly the place of the node it replaces. Ranks are the prefix sums of the nodes'
// worker counts, which may differ; role ranks the same within each role.
#pragma once

#include <cstdint>
#include <vector>

#include "rendezvous/core/seat_memory.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace muster::rendezvous {

struct Candidate {
  NodeOffer offer;
  std::uint64_t arrival = 0;  ///< counts up
};

struct PlannedSeat {
  NodeOffer offer;
  int group_rank = 0;
  int first_rank = 0;
  int first_role_rank = 0;
  int role_world_size = 0;
};

/// At most `places` of the candidates: those with a wish for one of the places, the endpoint's host, those
/// who sat in the newest round that any of them remembers, then by arrival.
std::vector<Candidate> choose_nodes(std::vector<Candidate> candidates, int places, const SeatMemory& memory);

/// By group rank. Candidates have different nodes and different wishes.
std::vector<PlannedSeat> plan_ranks(std::vector<Candidate> candidates, const SeatMemory& memory);

}  // namespace muster::rendezvous
