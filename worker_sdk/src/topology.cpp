#include "worker_sdk/src/topology.hpp"

#include <fmt/format.h>

#include <map>
#include <stdexcept>

namespace muster::worker {
namespace {

std::vector<int> ranks_where(std::span<const WorkerPlace> places, auto holds) {
  std::vector<int> ranks;
  for (std::size_t r = 0; r < places.size(); ++r)
    if (holds(places[r])) ranks.push_back(static_cast<int>(r));
  return ranks;
}

void check_same_size(std::span<const WorkerPlace> places) {
  std::map<int, int> workers;
  for (const auto& place : places) ++workers[place.group_rank];
  const auto [first, expected] = *workers.begin();
  for (const auto& [node, count] : workers)
    if (count != expected)
      throw std::invalid_argument(fmt::format(
          "groups across nodes: node {} has {} workers, node {} has {}; start as many on each node", first,
          expected, node, count));
}

}  // namespace

std::vector<int> ranks_on_node(std::span<const WorkerPlace> places, int rank) {
  const auto own = places[static_cast<std::size_t>(rank)];
  return ranks_where(places, [&](const WorkerPlace& place) { return place.group_rank == own.group_rank; });
}

std::vector<int> ranks_across_nodes(std::span<const WorkerPlace> places, int rank) {
  check_same_size(places);
  const auto own = places[static_cast<std::size_t>(rank)];
  return ranks_where(places, [&](const WorkerPlace& place) { return place.local_rank == own.local_rank; });
}

}  // namespace muster::worker
