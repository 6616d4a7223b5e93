// Which ranks share a node, and which stand in the same place on different nodes: pure.
#pragma once

#include <span>
#include <vector>

namespace muster::worker {

/// Where a rank is, as its launcher has told it.
struct WorkerPlace {
  int group_rank = 0;  ///< the node's
  int local_rank = 0;
};

/// `places[r]` is rank r's. The ranks on `rank`'s node, in ascending order.
std::vector<int> ranks_on_node(std::span<const WorkerPlace> places, int rank);

/// The ranks with `rank`'s local rank, one on each node, in ascending order. Throws std::invalid_argument that names two
/// nodes whose numbers of workers differ: then some would have no counterpart.
std::vector<int> ranks_across_nodes(std::span<const WorkerPlace> places, int rank);

}  // namespace muster::worker
