// Which node sat where, beyond the round and beyond the job: a node that comes back finds its ranks (and the
// shards on its disk) again.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "rendezvous/protocol/messages.hpp"

namespace muster::rendezvous {

class SeatMemory {
 public:
  struct Place {
    int group_rank = 0;
    int round = 0;  ///< the last one in which it sat there, or elsewhere since the round was too small
    bool operator==(const Place&) const = default;
  };
  using Places = std::map<NodeId, Place>;

  SeatMemory() = default;
  explicit SeatMemory(Places places) : places_(std::move(places)) {}

  /// `by_group_rank[i]` sat at group rank i. A node whose place a smaller round did not have keeps it: when the lost
  /// ones are back, everybody sits as before. Others are kept until there are too many of them: the oldest go.
  void remember(int round, const std::vector<NodeId>& by_group_rank);

  void remember(const NodeId& node, const Place& place) { places_[node] = place; }

  std::optional<Place> of(const NodeId& node) const;

  const Places& state() const { return places_; }

 private:
  Places places_;
};

constexpr std::size_t min_places_kept = 256;  ///< or twice the nodes of the last round, if that is more

}  // namespace muster::rendezvous
