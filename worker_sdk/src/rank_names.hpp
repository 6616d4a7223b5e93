// How the ranks of a group are called in messages: by their ranks in the world, whatever their place in the group.
#pragma once

#include <string>
#include <vector>

namespace muster::worker {

struct RankNames {
  std::string group;       ///< "node 1"; empty for the world
  std::vector<int> world;  ///< by rank in the group; empty: it is the world

  int operator()(int rank) const { return world.empty() ? rank : world[static_cast<std::size_t>(rank)]; }
};

}  // namespace muster::worker
