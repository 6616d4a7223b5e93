#include "rendezvous/store/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <charconv>

#include "rendezvous/store/known_keys.hpp"
#include "rendezvous/store/wire.hpp"

namespace muster::rendezvous {
namespace {

/// What an entry costs beside its bytes, about.
constexpr std::size_t entry_overhead_bytes = 112;
constexpr std::size_t queue_overhead_bytes = 96;  ///< without items
constexpr std::size_t item_overhead_bytes = 80;
constexpr std::string_view join_counter = "init/";

/// Reads like PyTorch's server: blanks and a sign may lead, what follows the digits does not matter.
bool parse_decimal(std::string_view text, std::int64_t* number) {
  while (!text.empty() && (text[0] == ' ' || (text[0] >= '\t' && text[0] <= '\r'))) text.remove_prefix(1);
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return false;
  }
  return std::from_chars(text.data(), text.data() + text.size(), *number).ec == std::errc{};
}

}  // namespace

StoreEngine::StoreEngine(StoreLimits limits) : limits_(limits) {}

StoreConnectionId StoreEngine::connect() {
  std::uint32_t slot;
  if (free_slots_.empty()) {
    slot = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  const auto generation = slots_[slot].generation + 1;
  slots_[slot] = Slot{generation, true, false, 0, {}};
  return std::uint64_t{generation} << 32 | slot;
}

void StoreEngine::disconnect(StoreConnectionId id, StoreWoken& woken) {
  waits_.drop(id);
  auto& slot = slots_[slot_of(id)];
  assert(slot.live && slot.generation == id >> 32);
  slot.live = false;
  free_slots_.push_back(static_cast<std::uint32_t>(slot_of(id)));
  if (slot.woken_by_queue.empty()) return;
  const std::string queue = std::move(slot.woken_by_queue);
  slot.woken_by_queue.clear();
  if (queues_.contains(queue)) wake_for_item(queue, woken);
}

StoreEngine::Refusal StoreEngine::handle(StoreConnectionId id, const StoreRequest& request,
                                         StoreOutput& reply, StoreWoken& woken) {
  assert(slots_[slot_of(id)].live && slots_[slot_of(id)].generation == id >> 32);
  switch (request.op) {
    case StoreOp::validate:
      return {};
    case StoreOp::set:
      return put(id, request, request.key, request.value, woken);
    case StoreOp::compare_set:
      return compare_set(id, request, reply, woken);
    case StoreOp::get:
      reply.put(value_of(request.key));
      return {};
    case StoreOp::add:
      return add(id, request, reply, woken);
    case StoreOp::check:
      wire::put_u8(reply.own(), all_present(request.keys) ? reply_ready : reply_not_ready);
      return {};
    case StoreOp::wait:
      return wait(id, request, reply);
    case StoreOp::num_keys:
      wire::put_i64(reply.own(), static_cast<std::int64_t>(values_.size()));
      return {};
    case StoreOp::delete_key:
      wire::put_i64(reply.own(), delete_key(request.key));
      return {};
    case StoreOp::append:
      return append(id, request, woken);
    case StoreOp::multi_get:
      return multi_get(request, reply);
    case StoreOp::multi_set:
      return multi_set(id, request, woken);
    case StoreOp::cancel_wait:
      waits_.drop(id);
      wire::put_u8(reply.own(), reply_wait_canceled);
      return {};
    case StoreOp::ping:
      slots_[slot_of(id)].pid = static_cast<std::uint32_t>(request.number) & ~ping_nonce_flag;
      wire::put(reply.own(), static_cast<std::uint32_t>(request.number));
      return {};
    case StoreOp::queue_push:
      return queue_push(request, woken);
    case StoreOp::queue_pop:
      slots_[slot_of(id)].woken_by_queue.clear();
      queue_pop(request.key, reply);
      return {};
    case StoreOp::queue_len:
      wire::put_i64(reply.own(), queue_len(request.key));
      return {};
    case StoreOp::list_keys:
      return list_keys(reply);
    case StoreOp::barrier:
      return barrier(id, request, reply, woken);
    case StoreOp::watch_key:
      wire::put_u8(reply.own(), reply_watching);
      return {};
  }
  return "a request that this store does not know";
}

const StoreValue& StoreEngine::value_of(std::string_view key) const {
  static const StoreValue absent;
  const auto at = values_.find(key);
  return at == values_.end() ? absent : at->second.value;
}

bool StoreEngine::present(std::string_view key) const {
  return values_.contains(key) || queues_.contains(key);
}

StoreEngine::Refusal StoreEngine::refuse_growth(StoreOp op, std::string_view key,
                                                std::size_t more_bytes) const {
  if (stored_bytes() + more_bytes <= limits_.stored_bytes_max) return {};
  return fmt::format("{} of key {}: the store would hold more than {} bytes (stored_bytes_max)", name_of(op),
                     shown_key(key), limits_.stored_bytes_max);
}

StoreEngine::Refusal StoreEngine::put(StoreConnectionId id, const StoreRequest& request, std::string_view key,
                                      std::string_view value, StoreWoken& woken) {
  const auto at = values_.find(key);
  if (at != values_.end()) {
    auto& [old, writer] = at->second;
    const auto freed = old.freed_bytes();
    if (value.size() > freed)
      if (auto refusal = refuse_growth(request.op, key, value.size() - freed)) return refusal;
    stored_bytes_ -= old.uncounted_bytes();
    old.assign(value, long_values_);
    stored_bytes_ += old.uncounted_bytes();
    writer = id;
  } else {
    const std::size_t cost = key.size() + entry_overhead_bytes;
    if (auto refusal = refuse_growth(request.op, key, cost + value.size())) return refusal;
    const auto made = values_.try_emplace(std::string(key), Value{{value, long_values_}, id}).first;
    stored_bytes_ += cost + made->second.value.uncounted_bytes();
  }
  waits_.key_written(key, woken);
  return {};
}

StoreEngine::Refusal StoreEngine::append(StoreConnectionId id, const StoreRequest& request,
                                         StoreWoken& woken) {
  const auto at = values_.find(request.key);
  if (at == values_.end()) return put(id, request, request.key, request.value, woken);
  auto& [value, writer] = at->second;
  const auto length = value.size() + request.value.size();
  if (length > limits_.value_bytes_max)
    return fmt::format("APPEND to key {}: its value would be longer than {} bytes (value_bytes_max)",
                       shown_key(request.key), limits_.value_bytes_max);
  if (auto refusal = refuse_growth(request.op, request.key, length - value.freed_bytes())) return refusal;
  stored_bytes_ -= value.uncounted_bytes();
  value.append(request.value, long_values_);
  stored_bytes_ += value.uncounted_bytes();
  writer = id;
  waits_.key_written(request.key, woken);
  return {};
}

StoreEngine::Refusal StoreEngine::compare_set(StoreConnectionId id, const StoreRequest& request,
                                              StoreOutput& reply, StoreWoken& woken) {
  const auto at = values_.find(request.key);
  const bool absent = at == values_.end();
  const bool matches = absent ? request.value.empty() : at->second.value.bytes() == request.value;
  if (!matches) {
    // For an absent key the caller gets its own expectation back: PyTorch's rendezvous relies on it.
    if (absent) wire::put_bytes(reply.own(), request.value);
    if (!absent) reply.put(at->second.value);
    return {};
  }
  if (auto refusal = put(id, request, request.key, request.desired, woken)) return refusal;
  reply.put(value_of(request.key));
  return {};
}

StoreEngine::Refusal StoreEngine::increase(StoreOp op, std::string_view key, std::int64_t delta,
                                           std::int64_t* sum) const {
  std::int64_t old = 0;
  const auto at = values_.find(key);
  if (at != values_.end() && !parse_decimal(at->second.value.bytes(), &old))
    return fmt::format("{} of key {}: its value {} is no decimal number of 64 bits", name_of(op),
                       shown_key(key), shown_key(at->second.value.bytes()));
  if (__builtin_add_overflow(old, delta, sum))
    return fmt::format("{} of key {}: {} and {} do not fit 64 bits", name_of(op), shown_key(key), old, delta);
  return {};
}

StoreEngine::Refusal StoreEngine::add(StoreConnectionId id, const StoreRequest& request, StoreOutput& reply,
                                      StoreWoken& woken) {
  std::int64_t sum = 0;
  if (auto refusal = increase(request.op, request.key, request.number, &sum)) return refusal;
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, sum).ptr;
  const std::string_view text(digits, static_cast<std::size_t>(end - digits));
  if (auto refusal = put(id, request, request.key, text, woken)) return refusal;
  if (request.number > 0 && request.key == join_counter) slots_[slot_of(id)].joined = true;
  wire::put_i64(reply.own(), sum);
  return {};
}

StoreEngine::Refusal StoreEngine::barrier(StoreConnectionId id, const StoreRequest& request,
                                          StoreOutput& reply, StoreWoken& woken) {
  std::int64_t arrived = 0;
  if (auto refusal = increase(request.op, request.key, 1, &arrived)) return refusal;
  const std::string text = std::to_string(arrived);
  if (arrived >= request.number) {
    if (auto refusal = put(id, request, request.key, text, woken)) return refusal;
    wire::put_u8(reply.own(), reply_stop_waiting);
    return {};
  }
  waits_.drop(id);
  const std::string_view key[] = {request.key};
  const auto at = values_.find(request.key);
  const std::size_t cost = request.key.size() + text.size() + entry_overhead_bytes;
  if (auto refusal = refuse_growth(request.op, request.key, cost + StoreWaits::cost_bytes(key)))
    return refusal;
  if (at == values_.end()) {
    values_.try_emplace(std::string(request.key), Value{{text, long_values_}, id});
    stored_bytes_ += cost;
    waits_.barrier_began(request.key, woken);
  } else {
    stored_bytes_ += text.size() - at->second.value.uncounted_bytes();
    at->second = Value{{text, long_values_}, id};
  }
  waits_.begin(id, key, StoreWaits::Kind::barrier);
  return {};
}

bool StoreEngine::all_present(const std::vector<std::string_view>& keys) const {
  return std::all_of(keys.begin(), keys.end(), [this](std::string_view key) { return present(key); });
}

StoreEngine::Refusal StoreEngine::wait(StoreConnectionId id, const StoreRequest& request,
                                       StoreOutput& reply) {
  waits_.drop(id);
  missing_.clear();
  for (const auto key : request.keys)
    if (!present(key)) missing_.push_back(key);
  if (missing_.empty()) {
    wire::put_u8(reply.own(), reply_stop_waiting);
    return {};
  }
  if (auto refusal = refuse_growth(request.op, missing_[0], StoreWaits::cost_bytes(missing_))) return refusal;
  waits_.begin(id, missing_, StoreWaits::Kind::keys);
  return {};
}

std::int64_t StoreEngine::delete_key(std::string_view key) {
  const auto at = values_.find(key);
  if (at == values_.end()) return 0;
  stored_bytes_ -= at->first.size() + at->second.value.uncounted_bytes() + entry_overhead_bytes;
  values_.erase(at);
  return 1;
}

StoreEngine::Refusal StoreEngine::multi_get(const StoreRequest& request, StoreOutput& reply) const {
  std::size_t bytes = 0;
  for (const auto key : request.keys) bytes += sizeof(std::uint64_t) + value_of(key).size();
  if (bytes > limits_.reply_bytes_max)
    return fmt::format("MULTI_GET of {} keys: a reply of {} bytes, more than {} (reply_bytes_max)",
                       request.keys.size(), bytes, limits_.reply_bytes_max);
  for (const auto key : request.keys) reply.put(value_of(key));
  return {};
}

StoreEngine::Refusal StoreEngine::multi_set(StoreConnectionId id, const StoreRequest& request,
                                            StoreWoken& woken) {
  for (std::size_t i = 0; i < request.keys.size(); ++i)
    if (auto refusal = put(id, request, request.keys[i], request.values[i], woken)) return refusal;
  return {};
}

StoreEngine::Refusal StoreEngine::list_keys(StoreOutput& reply) const {
  std::size_t bytes = sizeof(std::int64_t);
  for (const auto& entry : values_) bytes += sizeof(std::uint64_t) + entry.first.size();
  if (bytes > limits_.reply_bytes_max)
    return fmt::format("LIST_KEYS of {} keys: a reply of {} bytes, more than {} (reply_bytes_max)",
                       values_.size(), bytes, limits_.reply_bytes_max);
  auto& out = reply.own();
  out.reserve(out.size() + bytes);
  wire::put_i64(out, static_cast<std::int64_t>(values_.size()));
  for (const auto& entry : values_) wire::put_bytes(out, entry.first);
  return {};
}

StoreEngine::Refusal StoreEngine::queue_push(const StoreRequest& request, StoreWoken& woken) {
  auto at = queues_.find(request.key);
  const std::size_t queue_cost = at == queues_.end() ? request.key.size() + queue_overhead_bytes : 0;
  const std::size_t cost = request.value.size() + item_overhead_bytes;
  if (auto refusal = refuse_growth(request.op, request.key, queue_cost + cost)) return refusal;
  if (at == queues_.end()) at = queues_.try_emplace(std::string(request.key)).first;
  stored_bytes_ += queue_cost;
  at->second.emplace_back(request.value, long_values_);
  stored_bytes_ += item_overhead_bytes + at->second.back().uncounted_bytes();
  wake_for_item(request.key, woken);
  return {};
}

void StoreEngine::wake_for_item(std::string_view key, StoreWoken& woken) {
  const std::size_t before = woken.size();
  waits_.item_queued(key, woken);
  if (woken.size() > before) slots_[slot_of(woken.back())].woken_by_queue = key;
}

void StoreEngine::queue_pop(std::string_view key, StoreOutput& reply) {
  const auto at = queues_.find(key);
  if (at == queues_.end()) return wire::put_i64(reply.own(), 0);
  auto& queue = at->second;
  wire::put_i64(reply.own(), static_cast<std::int64_t>(queue.size()));
  reply.put(queue.front());
  stored_bytes_ -= queue.front().uncounted_bytes() + item_overhead_bytes;
  queue.pop_front();
  if (!queue.empty()) return;
  stored_bytes_ -= at->first.size() + queue_overhead_bytes;
  queues_.erase(at);
}

std::int64_t StoreEngine::queue_len(std::string_view key) const {
  const auto at = queues_.find(key);
  return at == queues_.end() ? 0 : static_cast<std::int64_t>(at->second.size());
}

std::optional<std::int64_t> StoreEngine::joined() const {
  std::int64_t number = 0;
  const auto at = values_.find(join_counter);
  if (at == values_.end() || !parse_decimal(at->second.value.bytes(), &number)) return std::nullopt;
  return number;
}

StoreDiagnosis StoreEngine::diagnosis() const {
  StoreDiagnosis diagnosis;
  diagnosis.joined = joined();
  std::vector<std::vector<std::string>> written(slots_.size());
  for (const auto& [key, value] : values_)
    if (slots_[slot_of(value.writer)].generation == value.writer >> 32)
      written[slot_of(value.writer)].push_back(key);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const auto& slot = slots_[i];
    if (!slot.live) continue;
    StoreDiagnosis::Connection connection;
    connection.id = std::uint64_t{slot.generation} << 32 | i;
    connection.pid = slot.pid;
    connection.joined = slot.joined;
    connection.waits_for = waits_.keys_of(connection.id);
    connection.waiting_periods = waits_.periods_of(connection.id);
    connection.keys_set = std::move(written[i]);
    std::sort(connection.keys_set.begin(), connection.keys_set.end());
    const auto cut = [this](std::vector<std::string>& keys) {
      keys.resize(std::min(keys.size(), limits_.reported_keys_per_client_max));
    };
    cut(connection.waits_for);
    cut(connection.keys_set);
    diagnosis.connections.push_back(std::move(connection));
  }
  return diagnosis;
}

}  // namespace muster::rendezvous
