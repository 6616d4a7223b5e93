#include "rendezvous/store/waits.hpp"

#include <algorithm>

namespace muster::rendezvous {
namespace {

constexpr std::size_t key_overhead_bytes = 96;
constexpr std::size_t waiter_bytes = 24;
constexpr std::size_t cleared_at_once_max = 1'000;  // keys: under a millisecond

}  // namespace

std::size_t StoreWaits::cost_bytes(std::span<const std::string_view> missing) {
  std::size_t sum = 0;
  for (const auto key : missing) sum += key.size() + key_overhead_bytes + waiter_bytes;
  return sum;
}

void StoreWaits::begin(StoreConnectionId id, std::span<const std::string_view> missing, Kind kind) {
  const Serial serial = ++last_serial_;
  auto& wait = waits_[serial];
  wait.began_in = period_;
  wait.id = id;
  wait.keys.reserve(missing.size());
  for (const auto key : missing) {
    auto at = by_key_.find(key);
    if (at == by_key_.end()) {
      at = by_key_.try_emplace(std::string(key)).first;
      bytes_ += key.size() + key_overhead_bytes;
    }
    auto& waiters = at->second;
    if (!waiters.empty() && waiters.back().wait == serial) continue;
    waiters.push_back({serial, static_cast<std::uint32_t>(wait.keys.size()), kind});
    bytes_ += waiter_bytes;
    wait.keys.push_back(&*at);
  }
  wait.left = wait.keys.size();
  current_[id] = serial;
}

void StoreWaits::drop(StoreConnectionId id) {
  const auto found = current_.find(id);
  if (found == current_.end()) return;
  const Serial serial = found->second;
  current_.erase(found);
  const auto at = waits_.find(serial);
  at->second.dropped = true;
  if (at->second.keys.size() > cleared_at_once_max) return dropped_.push_back(serial);
  clear_up(serial, at->second, cleared_at_once_max);
  waits_.erase(at);
}

void StoreWaits::clear_up(std::size_t keys_max) {
  while (!dropped_.empty() && keys_max > 0) {
    const auto at = waits_.find(dropped_.back());
    if (at != waits_.end()) {
      keys_max -= clear_up(at->first, at->second, keys_max);
      if (!at->second.keys.empty()) return;
      waits_.erase(at);
    }
    dropped_.pop_back();
  }
}

/// How many keys it has looked at.
std::size_t StoreWaits::clear_up(Serial serial, Wait& wait, std::size_t keys_max) {
  const auto count = std::min(keys_max, wait.keys.size());
  for (std::size_t i = 0; i < count; ++i) {
    auto* node = wait.keys.back();
    wait.keys.pop_back();
    if (!node) continue;
    --wait.left;
    auto& waiters = node->second;
    bytes_ -= waiter_bytes *
              std::erase_if(waiters, [serial](const Waiter& waiter) { return waiter.wait == serial; });
    if (waiters.empty()) erase(by_key_.find(node->first));
  }
  return count;
}

const StoreWaits::Wait* StoreWaits::current(StoreConnectionId id) const {
  const auto found = current_.find(id);
  return found == current_.end() ? nullptr : &waits_.at(found->second);
}

unsigned StoreWaits::periods_of(StoreConnectionId id) const {
  const auto* wait = current(id);
  return wait ? period_ - wait->began_in : 0;
}

unsigned StoreWaits::periods_of_oldest() const {
  unsigned oldest = 0;
  for (const auto& [serial, wait] : waits_)
    if (!wait.dropped) oldest = std::max(oldest, period_ - wait.began_in);
  return oldest;
}

std::vector<std::string> StoreWaits::keys_of(StoreConnectionId id) const {
  std::vector<std::string> keys;
  if (const auto* wait = current(id))
    for (const auto* node : wait->keys)
      if (node) keys.push_back(node->first);
  return keys;
}

/// True: a client is woken by it.
bool StoreWaits::satisfy(const Waiter& waiter, StoreWoken& woken) {
  bytes_ -= waiter_bytes;
  const auto found = waits_.find(waiter.wait);
  auto& wait = found->second;
  wait.keys[waiter.index] = nullptr;
  if (--wait.left > 0) return false;
  const bool wakes = !wait.dropped;
  if (wakes) {
    woken.push_back(wait.id);
    current_.erase(wait.id);
  }
  waits_.erase(found);
  return wakes;
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
