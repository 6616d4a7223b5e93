// A node that fails again and again has to wait before it is let in again, longer each time. Being struck
// once has no consequence, and what is long ago is forgotten: no node is banned for the life of the job.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "rendezvous/core/policy.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace muster::rendezvous {

class Cooldown {
 public:
  using Strikes = std::map<NodeId, std::deque<Instant>>;  ///< oldest first

  explicit Cooldown(const JobPolicy& policy, Strikes strikes = {});

  /// A worker of `node` was a round's first failure, or the node itself was lost.
  void strike(const NodeId& node, Instant now);

  /// Until when `node` is passed over; nothing if it may come in.
  std::optional<Instant> until(const NodeId& node, Instant now) const;

  int strikes(const NodeId& node, Instant now) const;
  /// Of the last minute.
  int strikes_of_late(const NodeId& node, Instant now) const;

  /// All that are passed over now, in order.
  std::vector<NodeId> cooling(Instant now) const;

  /// An operator's pardon. False if there was nothing to pardon.
  bool clear(const NodeId& node);

  const Strikes& state() const { return strikes_; }

 private:
  void forget_old(Instant now);
  int strikes_since(const NodeId& node, Instant horizon) const;

  JobPolicy policy_;
  Strikes strikes_;
  std::set<NodeId> repeated_;  ///< with two strikes or more: only they can cool down
};

constexpr std::size_t max_strikes_kept = 64;
constexpr std::size_t max_struck_nodes = 4096;

}  // namespace muster::rendezvous
