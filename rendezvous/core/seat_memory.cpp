#include "rendezvous/core/seat_memory.hpp"

#include <algorithm>

namespace muster::rendezvous {

void SeatMemory::remember(int round, const std::vector<NodeId>& by_group_rank) {
  for (std::size_t i = 0; i < by_group_rank.size(); ++i)
    places_[by_group_rank[i]] = {static_cast<int>(i), round};
  const std::size_t limit = std::max(min_places_kept, 2 * by_group_rank.size());
  if (places_.size() <= limit) return;
  std::vector<std::pair<int, NodeId>> oldest;
  for (const auto& [node, place] : places_) oldest.emplace_back(place.round, node);
  std::sort(oldest.begin(), oldest.end());
  oldest.resize(places_.size() - limit);
  for (const auto& [when, node] : oldest) places_.erase(node);
}

std::optional<SeatMemory::Place> SeatMemory::of(const NodeId& node) const {
  const auto found = places_.find(node);
  return found == places_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace muster::rendezvous
