#include "rendezvous/core/membership.hpp"

#include <algorithm>
#include <cassert>

namespace muster::rendezvous {
namespace {

bool available_now(const Member& member) {
  return member.stand == Stand::ready && member.connected() && member.leaving.empty();
}

bool coming_soon(const Member& member) {
  return member.stand != Stand::seated && member.leaving.empty() && !available_now(member);
}

}  // namespace

Membership::Membership(Members members) : members_(std::move(members)) {
  for (const auto& [node, member] : members_) {
    arrivals_ = std::max(arrivals_, member.arrival);
    count(node, member, +1);
  }
}

const Member* Membership::find(const NodeId& node) const {
  const auto found = members_.find(node);
  return found == members_.end() ? nullptr : &found->second;
}

// The indices are never touched but here: a member is taken out of them, changed, and put back.
template <class Change>
void Membership::change(const NodeId& node, Change&& apply) {
  const auto found = members_.find(node);
  assert(found != members_.end());
  count(node, found->second, -1);
  apply(found->second);
  count(node, found->second, +1);
}

void Membership::count(const NodeId& node, const Member& member, int sign) {
  const auto keep = [sign](auto& set, auto key) {
    if (sign > 0)
      set.insert(std::move(key));
    else
      set.erase(key);
  };
  if (available_now(member)) keep(available_, std::pair(member.arrival, node));
  if (member.away_until) keep(away_, std::pair(*member.away_until, node));
  if (coming_soon(member)) coming_ += sign;
  if (coming_soon(member) && member.stand == Stand::between && member.connected()) rejoining_ += sign;
  if (member.leaving.empty()) staying_ += sign;
  if (member.stand == Stand::seated && member.away_until) seated_away_ += sign;
  if (const auto wish = member.offer.preferred_group_rank) {
    if (sign > 0)
      claims_.emplace(*wish, node);
    else if (const auto claim = claims_.find(*wish); claim != claims_.end() && claim->second == node)
      claims_.erase(claim);
  }
}

void Membership::join(const NodeOffer& offer, Stand stand) {
  if (!members_.count(offer.node)) {
    Member member;
    member.arrival = ++arrivals_;
    count(offer.node, members_.emplace(offer.node, std::move(member)).first->second, +1);
  }
  change(offer.node, [&](Member& member) {
    member.offer = offer;
    member.stand = stand;
    member.away_until.reset();
    member.away_reason.clear();
    if (stand != Stand::ready) return;
    member.leaving.clear();
    member.drained = false;
  });
}

void Membership::remove(const NodeId& node) {
  const auto found = members_.find(node);
  if (found == members_.end()) return;
  count(node, found->second, -1);
  members_.erase(found);
}

void Membership::set_stand(const NodeId& node, Stand stand) {
  change(node, [&](Member& member) { member.stand = stand; });
}

void Membership::set_leaving(const NodeId& node, std::string reason, bool drained) {
  change(node, [&](Member& member) {
    member.leaving = reason.empty() ? "it wants to go" : std::move(reason);
    member.drained = drained;
  });
}

void Membership::away(const NodeId& node, Instant until, bool by_itself, std::string reason) {
  change(node, [&](Member& member) {
    member.away_until = until;
    member.away_by_itself = by_itself;
    member.away_reason = std::move(reason);
  });
}

void Membership::back(const NodeId& node) {
  change(node, [&](Member& member) {
    member.away_until.reset();
    member.away_reason.clear();
  });
}

bool Membership::is_available(const NodeId& node) const {
  const Member* member = find(node);
  return member && available_now(*member);
}

std::vector<Candidate> Membership::candidates() const {
  std::vector<Candidate> all;
  for (const auto& [arrival, node] : available_) all.push_back({members_.at(node).offer, arrival});
  return all;
}

std::vector<NodeId> Membership::first_available(int at_most) const {
  std::vector<NodeId> names;
  for (const auto& [arrival, node] : available_) {
    if (static_cast<int>(names.size()) >= at_most) break;
    names.push_back(node);
  }
  return names;
}

std::optional<NodeId> Membership::claimant(int group_rank) const {
  const auto found = claims_.find(group_rank);
  return found == claims_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<NodeId> Membership::overdue(Instant now) const {
  std::vector<NodeId> nodes;
  for (const auto& [until, node] : away_) {
    if (until > now) break;
    nodes.push_back(node);
  }
  return nodes;
}

std::optional<Instant> Membership::next_overdue() const {
  return away_.empty() ? std::nullopt : std::optional(away_.begin()->first);
}

std::vector<NodeId> Membership::away_nodes() const {
  std::vector<NodeId> nodes;
  for (const auto& [until, node] : away_) nodes.push_back(node);
  return nodes;
}

}  // namespace muster::rendezvous
