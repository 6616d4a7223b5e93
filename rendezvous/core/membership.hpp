// Who belongs to the job, whether its connection stands, and what it stands ready for. Every question that
// the job asks at each step is answered without walking over all nodes.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/core/rank_plan.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace muster::rendezvous {

/// Why a node waits, reduced to numbers: equal keys, no news.
using NewsKey = std::array<int, 10>;

enum class Stand : std::uint8_t {
  between,  ///< had workers in a round that ended for it; its Join is still to come
  ready,    ///< has joined for the next round; no worker of it is alive
  seated    ///< belongs to the live round
};

struct Member {
  NodeOffer offer;
  std::uint64_t arrival = 0;
  Stand stand = Stand::between;
  std::optional<Instant> away_until;  ///< set while its connection is gone
  bool away_by_itself = false;        ///< it was not the daemon that was away
  std::string away_reason;
  std::string leaving;   ///< why it goes; empty: it stays
  bool drained = false;  ///< it goes because an operator wants it to
  NewsKey told{};        ///< what it heard last of why it waits
  bool operator==(const Member&) const = default;

  bool connected() const { return !away_until; }
};

class Membership {
 public:
  using Members = std::map<NodeId, Member>;

  Membership() = default;
  explicit Membership(Members members);

  const Member* find(const NodeId& node) const;
  const Members& all() const { return members_; }

  /// A new member or a known one with a new offer. Its connection stands; if it is ready, it does not leave.
  void join(const NodeOffer& offer, Stand stand);
  void remove(const NodeId& node);
  void set_stand(const NodeId& node, Stand stand);
  void set_leaving(const NodeId& node, std::string reason, bool drained);
  void away(const NodeId& node, Instant until, bool by_itself, std::string reason);
  void back(const NodeId& node);
  void told(const NodeId& node, const NewsKey& key) { members_.at(node).told = key; }

  /// Ready, connected, not leaving: can sit in a round formed now. In the order of arrival.
  int available() const { return static_cast<int>(available_.size()); }
  bool is_available(const NodeId& node) const;
  std::vector<Candidate> candidates() const;
  std::vector<NodeId> first_available(int at_most) const;

  /// Will probably be available soon: between, or ready but away. Not those who leave.
  int coming() const { return coming_; }
  /// Of them: connected, and had workers in the round that has just ended. They ask for the next one in a moment.
  int rejoining() const { return rejoining_; }
  /// All who have not said that they leave.
  int staying() const { return staying_; }

  /// Of the live round, but with no connection now.
  int seated_away() const { return seated_away_; }

  /// Who claims this group rank by wish.
  std::optional<NodeId> claimant(int group_rank) const;

  /// The nodes whose time to come back is over, and when the next one's will be.
  std::vector<NodeId> overdue(Instant now) const;
  std::optional<Instant> next_overdue() const;
  /// Those who are away, soonest lost first.
  std::vector<NodeId> away_nodes() const;

 private:
  template <class Change>
  void change(const NodeId& node, Change&& apply);
  void count(const NodeId& node, const Member& member, int sign);

  Members members_;
  std::uint64_t arrivals_ = 0;
  std::set<std::pair<std::uint64_t, NodeId>> available_;
  std::set<std::pair<Instant, NodeId>> away_;
  std::map<int, NodeId> claims_;
  int coming_ = 0;
  int rejoining_ = 0;
  int staying_ = 0;
  int seated_away_ = 0;
};

}  // namespace muster::rendezvous
