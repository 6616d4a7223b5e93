// How the ranks of a group are called in messages: by their ranks in the world, whatever their place in the group.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
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

/// What begins every message of a group that was not formed.
inline std::string forming_text(const std::string& group) {
  return fmt::format("forming the group{}", group.empty() ? "" : " " + group);
}

/// "2 of 4 ranks did not come within 300 s: 1, 2".
inline std::string absent_ranks_text(const std::vector<int>& absent, std::size_t size,
                                     std::chrono::milliseconds timeout) {
  return fmt::format("{} of {} ranks did not come within {} s: {}", absent.size(), size,
                     std::chrono::duration<double>(timeout).count(), fmt::join(absent, ", "));
}

}  // namespace muster::worker
