#include "rendezvous/core/cooldown.hpp"

#include <algorithm>

namespace muster::rendezvous {
namespace {

Duration delay_after(int strikes, const JobPolicy& policy) {
  Duration delay = policy.cooldown_base;
  for (int i = 2; i < strikes && delay < policy.cooldown_cap; ++i) delay *= 2;
  return std::min(delay, policy.cooldown_cap);
}

}  // namespace

Cooldown::Cooldown(const JobPolicy& policy, Strikes strikes) : policy_(policy), strikes_(std::move(strikes)) {
  for (const auto& [node, times] : strikes_)
    if (times.size() >= 2) repeated_.insert(node);
}

void Cooldown::strike(const NodeId& node, Instant now) {
  if (strikes_.size() >= max_struck_nodes && !strikes_.count(node)) forget_old(now);
  if (strikes_.size() >= max_struck_nodes && !strikes_.count(node)) return;
  auto& times = strikes_[node];
  while (!times.empty() && times.front() <= now - policy_.cooldown_memory) times.pop_front();
  times.push_back(now);
  if (times.size() > max_strikes_kept) times.pop_front();
  if (times.size() >= 2) repeated_.insert(node);
}

void Cooldown::forget_old(Instant now) {
  const Instant horizon = now - policy_.cooldown_memory;
  for (auto it = strikes_.begin(); it != strikes_.end();) {
    const bool old = it->second.back() <= horizon;
    if (old) repeated_.erase(it->first);
    it = old ? strikes_.erase(it) : std::next(it);
  }
}

int Cooldown::strikes(const NodeId& node, Instant now) const {
  return strikes_since(node, now - policy_.cooldown_memory);
}

int Cooldown::strikes_of_late(const NodeId& node, Instant now) const {
  return strikes_since(node, now - std::min<Duration>(std::chrono::minutes(1), policy_.cooldown_memory));
}

int Cooldown::strikes_since(const NodeId& node, Instant horizon) const {
  const auto found = strikes_.find(node);
  if (found == strikes_.end()) return 0;
  return static_cast<int>(
      std::count_if(found->second.begin(), found->second.end(), [&](Instant at) { return at > horizon; }));
}

std::optional<Instant> Cooldown::until(const NodeId& node, Instant now) const {
  const int count = strikes(node, now);
  if (count < 2) return std::nullopt;
  const Instant end = strikes_.at(node).back() + delay_after(count, policy_);
  return end > now ? std::optional(end) : std::nullopt;
}

std::vector<NodeId> Cooldown::cooling(Instant now) const {
  std::vector<NodeId> nodes;
  for (const NodeId& node : repeated_)
    if (until(node, now)) nodes.push_back(node);
  return nodes;
}

bool Cooldown::clear(const NodeId& node) {
  repeated_.erase(node);
  return strikes_.erase(node) > 0;
}

}  // namespace muster::rendezvous
