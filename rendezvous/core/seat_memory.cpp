#include "rendezvous/core/seat_memory.hpp"

#include <algorithm>

namespace muster::rendezvous {

void SeatMemory::remember(int round, const std::vector<NodeId>& by_group_rank) {
  const int size = static_cast<int>(by_group_rank.size());
  for (int rank = 0; rank < size; ++rank) {
    const auto [found, is_new] = places_.try_emplace(by_group_rank[static_cast<std::size_t>(rank)]);
    Place& place = found->second;
    const bool too_small_for_its_place = !is_new && place.group_rank >= size;
    place = {too_small_for_its_place ? place.group_rank : rank, round};
  }
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
