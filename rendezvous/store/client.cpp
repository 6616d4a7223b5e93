#include "rendezvous/store/client.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "rendezvous/store/channel.hpp"

namespace muster::rendezvous {
namespace {

StoreRequest request_of(StoreOp op, std::string_view key = {}, std::string_view value = {}) {
  StoreRequest request;
  request.op = op;
  request.key = key;
  request.value = value;
  return request;
}

StoreRequest request_of_keys(StoreOp op, const std::vector<std::string>& keys) {
  StoreRequest request;
  request.op = op;
  request.keys.assign(keys.begin(), keys.end());
  return request;
}

void wait_for(StoreChannel& channel, const std::vector<std::string>& wire_keys,
              const StoreDeadline& deadline) {
  if (channel.wait(request_of_keys(StoreOp::wait, wire_keys), deadline)) return;
  throw StoreTimeout(
      fmt::format("wait timeout after {}ms, keys: {}", deadline.span.count(), fmt::join(wire_keys, ", ")));
}

}  // namespace

StoreClient::StoreClient(Endpoint server, StoreClientOptions options)
    : StoreClient(std::make_shared<StoreChannel>(std::move(server), options), "/") {}

StoreClient::StoreClient(std::shared_ptr<StoreChannel> channel, std::string prefix)
    : channel_(std::move(channel)), prefix_(std::move(prefix)) {}

StoreClient StoreClient::prefixed(std::string_view prefix) const {
  return {channel_, prefix_ + std::string(prefix) + "/"};
}

StoreDialect StoreClient::dialect() const { return channel_->dialect(); }
const Endpoint& StoreClient::server() const { return channel_->server(); }

std::vector<std::string> StoreClient::wire_keys(const std::vector<std::string>& keys) const {
  std::vector<std::string> wire;
  wire.reserve(keys.size());
  for (const auto& key : keys) wire.push_back(wire_key(key));
  return wire;
}

StoreDeadline StoreClient::deadline_of(const Timeout& timeout) const {
  return StoreDeadline::in(timeout.value_or(channel_->options().timeout));
}

void StoreClient::set(std::string_view key, std::string_view value) {
  const auto wire = wire_key(key);
  channel_->call(request_of(StoreOp::set, wire, value), deadline_of({}));
}

std::string StoreClient::get(std::string_view key, Timeout timeout) {
  const auto wire = wire_key(key);
  const auto deadline = deadline_of(timeout);
  wait_for(*channel_, {wire}, deadline);
  return channel_->call(request_of(StoreOp::get, wire), deadline_of({})).values.at(0);
}

std::int64_t StoreClient::add(std::string_view key, std::int64_t delta) {
  const auto wire = wire_key(key);
  auto request = request_of(StoreOp::add, wire);
  request.number = delta;
  return channel_->call(request, deadline_of({})).number;
}

std::string StoreClient::compare_set(std::string_view key, std::string_view expected,
                                     std::string_view desired) {
  const auto wire = wire_key(key);
  auto request = request_of(StoreOp::compare_set, wire, expected);
  request.desired = desired;
  return channel_->call(request, deadline_of({})).values.at(0);
}

bool StoreClient::check(const std::vector<std::string>& keys) {
  const auto wire = wire_keys(keys);
  return channel_->call(request_of_keys(StoreOp::check, wire), deadline_of({})).number == reply_ready;
}

void StoreClient::wait(const std::vector<std::string>& keys, Timeout timeout) {
  wait_for(*channel_, wire_keys(keys), deadline_of(timeout));
}

bool StoreClient::delete_key(std::string_view key) {
  const auto wire = wire_key(key);
  return channel_->call(request_of(StoreOp::delete_key, wire), deadline_of({})).number > 0;
}

std::int64_t StoreClient::num_keys() {
  return channel_->call(request_of(StoreOp::num_keys), deadline_of({})).number;
}

std::vector<std::string> StoreClient::multi_get(const std::vector<std::string>& keys, Timeout timeout) {
  const auto wire = wire_keys(keys);
  wait_for(*channel_, wire, deadline_of(timeout));
  if (channel_->dialect() == StoreDialect::c)
    return channel_->call(request_of_keys(StoreOp::multi_get, wire), deadline_of({})).values;
  std::vector<std::string> values;
  for (const auto& key : wire)
    values.push_back(channel_->call(request_of(StoreOp::get, key), deadline_of({})).values.at(0));
  return values;
}

void StoreClient::multi_set(const std::vector<std::pair<std::string, std::string>>& entries) {
  if (channel_->dialect() == StoreDialect::a) {
    for (const auto& [key, value] : entries) set(key, value);
    return;
  }
  std::vector<std::string> wire;
  StoreRequest request;
  request.op = StoreOp::multi_set;
  for (const auto& [key, value] : entries) {
    wire.push_back(wire_key(key));
    request.values.push_back(value);
  }
  request.keys.assign(wire.begin(), wire.end());
  channel_->call(request, deadline_of({}));
}

void StoreClient::append(std::string_view key, std::string_view suffix) {
  const auto wire = wire_key(key);
  channel_->call(request_of(StoreOp::append, wire, suffix), deadline_of({}));
}

void StoreClient::queue_push(std::string_view key, std::string_view value) {
  const auto wire = wire_key(key);
  channel_->call(request_of(StoreOp::queue_push, wire, value), deadline_of({}));
}

std::optional<std::string> StoreClient::queue_pop(std::string_view key) {
  const auto wire = wire_key(key);
  auto answer = channel_->call(request_of(StoreOp::queue_pop, wire), deadline_of({}));
  if (answer.values.empty()) return std::nullopt;
  return std::move(answer.values[0]);
}

std::string StoreClient::queue_pop_wait(std::string_view key, Timeout timeout) {
  const auto deadline = deadline_of(timeout);
  do {
    wait_for(*channel_, {wire_key(key)}, deadline);
    if (auto item = queue_pop(key)) return std::move(*item);
  } while (std::chrono::steady_clock::now() < deadline.at);
  throw StoreTimeout(fmt::format("queue timeout after {}ms, key: {}: others took every item",
                                 deadline.span.count(), wire_key(key)));
}

std::int64_t StoreClient::queue_len(std::string_view key) {
  const auto wire = wire_key(key);
  return channel_->call(request_of(StoreOp::queue_len, wire), deadline_of({})).number;
}

std::vector<std::string> StoreClient::list_keys() {
  std::vector<std::string> keys;
  for (const auto& key : channel_->call(request_of(StoreOp::list_keys), deadline_of({})).values)
    if (key.starts_with(prefix_)) keys.push_back(key.substr(prefix_.size()));
  std::sort(keys.begin(), keys.end());
  return keys;
}

void StoreClient::barrier(std::string_view key, std::int64_t world_size, Timeout timeout) {
  const auto deadline = deadline_of(timeout);
  const auto wire = wire_key(key);
  bool complete = false;
  if (channel_->dialect() == StoreDialect::c) {
    auto request = request_of(StoreOp::barrier, wire);
    request.number = world_size;
    complete = channel_->wait(request, deadline);
  } else {
    const auto last = std::string(key) + "/last_member";
    if (add(std::string(key) + "/num_members", 1) >= world_size) set(last, "1");
    complete = channel_->wait(request_of_keys(StoreOp::wait, {wire_key(last)}), deadline);
  }
  if (!complete)
    throw StoreTimeout(fmt::format("barrier timeout after {}ms, key: {}", deadline.span.count(), wire));
}

std::int64_t StoreClient::announce_worker() {
  auto request = request_of(StoreOp::add, "init/");
  request.number = 1;
  return channel_->call(request, deadline_of({})).number;
}

bool StoreClient::ping() {
  if (!channel_->has_ping()) return false;
  auto request = request_of(StoreOp::ping);
  request.number = ping_nonce();
  channel_->call(request, deadline_of({}));
  return true;
}

}  // namespace muster::rendezvous
