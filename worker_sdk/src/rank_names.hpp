// How the ranks of a group are called in messages: by their ranks in the world, whatever their place in the group.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

namespace muster::worker {

struct RankNames {
  std::string group;       ///< "node 1"; empty for the world
  std::vector<int> world;  ///< by rank in the group; empty: it is the world

  int operator()(int rank) const { return world.empty() ? rank : world[static_cast<std::size_t>(rank)]; }
};

/// "rank 1", "ranks 0, 2".
inline std::string ranks_text(const std::vector<int>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}

}  // namespace muster::worker
