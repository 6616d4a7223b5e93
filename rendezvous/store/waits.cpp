#include "rendezvous/store/waits.hpp"

#include <algorithm>

namespace muster::rendezvous {
namespace {

constexpr std::size_t key_overhead_bytes = 96;
constexpr std::size_t waiter_bytes = 24;

}  // namespace

std::size_t StoreWaits::cost_bytes(std::span<const std::string_view> missing) {
  std::size_t sum = 0;
  for (const auto key : missing) sum += key.size() + key_overhead_bytes + waiter_bytes;
  return sum;
}

void StoreWaits::begin(StoreConnectionId id, std::span<const std::string_view> missing, Kind kind) {
  auto& wait = waits_[id];
  wait.began_in = period_;
  wait.keys.reserve(missing.size());
  for (const auto key : missing) {
    auto at = by_key_.find(key);
    if (at == by_key_.end()) {
      at = by_key_.try_emplace(std::string(key)).first;
      bytes_ += key.size() + key_overhead_bytes;
    }
    auto& waiters = at->second;
    if (!waiters.empty() && waiters.back().id == id) continue;
    waiters.push_back({id, static_cast<std::uint32_t>(wait.keys.size()), kind});
    bytes_ += waiter_bytes;
    wait.keys.push_back(&*at);
  }
  wait.left = wait.keys.size();
}

void StoreWaits::drop(StoreConnectionId id) {
  const auto found = waits_.find(id);
  if (found == waits_.end()) return;
  for (auto* node : found->second.keys) {
    if (!node) continue;
    auto& waiters = node->second;
    bytes_ -= waiter_bytes * std::erase_if(waiters, [id](const Waiter& waiter) { return waiter.id == id; });
    if (waiters.empty()) erase(by_key_.find(node->first));
  }
  waits_.erase(found);
}

unsigned StoreWaits::periods_of(StoreConnectionId id) const {
  const auto found = waits_.find(id);
  return found == waits_.end() ? 0 : period_ - found->second.began_in;
}

unsigned StoreWaits::periods_of_oldest() const {
  unsigned oldest = 0;
  for (const auto& [id, wait] : waits_) oldest = std::max(oldest, period_ - wait.began_in);
  return oldest;
}

std::vector<std::string> StoreWaits::keys_of(StoreConnectionId id) const {
  std::vector<std::string> keys;
  if (const auto found = waits_.find(id); found != waits_.end())
    for (const auto* node : found->second.keys)
      if (node) keys.push_back(node->first);
  return keys;
}

bool StoreWaits::satisfy(const Waiter& waiter, StoreWoken& woken) {
  bytes_ -= waiter_bytes;
  const auto found = waits_.find(waiter.id);
  found->second.keys[waiter.index] = nullptr;
  if (--found->second.left > 0) return false;
  waits_.erase(found);
  woken.push_back(waiter.id);
  return true;
}

void StoreWaits::erase(ByKey::iterator at) {
  bytes_ -= at->first.size() + key_overhead_bytes;
  by_key_.erase(at);
}

void StoreWaits::key_written(std::string_view key, StoreWoken& woken) {
  if (by_key_.empty()) return;
  const auto at = by_key_.find(key);
  if (at == by_key_.end()) return;
  for (const auto& waiter : at->second) satisfy(waiter, woken);
  erase(at);
}

void StoreWaits::barrier_began(std::string_view key, StoreWoken& woken) {
  const auto at = by_key_.find(key);
  if (at == by_key_.end()) return;
  std::erase_if(at->second, [&](const Waiter& waiter) {
    if (waiter.kind == Kind::barrier) return false;
    satisfy(waiter, woken);
    return true;
  });
  if (at->second.empty()) erase(at);
}

void StoreWaits::item_queued(std::string_view key, StoreWoken& woken) {
  const auto at = by_key_.find(key);
  if (at == by_key_.end()) return;
  // A wait that still lacks other keys has this one now, but takes nothing yet: go on to the next.
  bool one_woke = false;
  std::erase_if(at->second, [&](const Waiter& waiter) {
    if (one_woke || waiter.kind == Kind::barrier) return false;
    one_woke = satisfy(waiter, woken);
    return true;
  });
  if (at->second.empty()) erase(at);
}

}  // namespace muster::rendezvous
