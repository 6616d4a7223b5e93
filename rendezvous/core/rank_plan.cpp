#include "rendezvous/core/rank_plan.hpp"

#include <algorithm>
#include <climits>
#include <map>
#include <tuple>
#include <utility>

namespace muster::rendezvous {
namespace {

bool wishes_one_of(const NodeOffer& offer, int places) {
  return offer.preferred_group_rank && *offer.preferred_group_rank >= 0 &&
         *offer.preferred_group_rank < places;
}

/// A table that fills place by place.
class Table {
 public:
  explicit Table(std::size_t places) : at_(places, nullptr) {}

  bool seat(const Candidate& candidate, int place) {
    if (place < 0 || static_cast<std::size_t>(place) >= at_.size() || at_[static_cast<std::size_t>(place)])
      return false;
    at_[static_cast<std::size_t>(place)] = &candidate;
    return true;
  }

  void seat_anywhere(const Candidate& candidate) {
    while (at_[free_]) ++free_;
    at_[free_] = &candidate;
  }

  const std::vector<const Candidate*>& in_order() const { return at_; }

 private:
  std::vector<const Candidate*> at_;
  std::size_t free_ = 0;
};

/// Newest round first, so that of two nodes that remember the same place the later one keeps it.
auto by_memory(const Candidate& candidate, const SeatMemory& memory) {
  const auto place = memory.of(candidate.offer.node);
  return place ? std::tuple(-place->round, place->group_rank, candidate.arrival)
               : std::tuple(INT_MAX, 0, candidate.arrival);
}

std::vector<PlannedSeat> with_ranks(const std::vector<const Candidate*>& in_order) {
  std::map<std::string, int> role_sizes;
  for (const Candidate* candidate : in_order)
    role_sizes[candidate->offer.role] += candidate->offer.local_workers;
  std::map<std::string, int> next_role_rank;
  std::vector<PlannedSeat> seats;
  int next_rank = 0;
  for (const Candidate* candidate : in_order) {
    const NodeOffer& offer = candidate->offer;
    seats.push_back({offer, static_cast<int>(seats.size()), next_rank, next_role_rank[offer.role],
                     role_sizes[offer.role]});
    next_rank += offer.local_workers;
    next_role_rank[offer.role] += offer.local_workers;
  }
  return seats;
}

}  // namespace

std::vector<Candidate> choose_nodes(std::vector<Candidate> candidates, int places, const SeatMemory& memory) {
  if (candidates.size() <= static_cast<std::size_t>(places)) return candidates;
  const auto urgency = [&](const Candidate& candidate) {
    return std::tuple(!wishes_one_of(candidate.offer, places), !candidate.offer.hosts_endpoint,
                      by_memory(candidate, memory));
  };
  std::sort(candidates.begin(), candidates.end(),
            [&](const Candidate& a, const Candidate& b) { return urgency(a) < urgency(b); });
  candidates.resize(static_cast<std::size_t>(places));
  return candidates;
}

std::vector<PlannedSeat> plan_ranks(std::vector<Candidate> candidates, const SeatMemory& memory) {
  std::sort(candidates.begin(), candidates.end(), [&](const Candidate& a, const Candidate& b) {
    return by_memory(a, memory) < by_memory(b, memory);
  });
  const int places = static_cast<int>(candidates.size());
  Table table(candidates.size());
  auto seat_those = [&, seated = std::vector<bool>(candidates.size(), false)](auto&& rule) mutable {
    for (std::size_t i = 0; i < candidates.size(); ++i)
      if (!seated[i]) seated[i] = rule(candidates[i]);
  };
  seat_those([&](const Candidate& candidate) {
    return wishes_one_of(candidate.offer, places) &&
           table.seat(candidate, *candidate.offer.preferred_group_rank);
  });
  seat_those(
      [&](const Candidate& candidate) { return candidate.offer.hosts_endpoint && table.seat(candidate, 0); });
  seat_those([&](const Candidate& candidate) {
    const auto place = memory.of(candidate.offer.node);
    return place && table.seat(candidate, place->group_rank);
  });
  seat_those([&](const Candidate& candidate) {
    table.seat_anywhere(candidate);
    return true;
  });
  return with_ranks(table.in_order());
}

}  // namespace muster::rendezvous
