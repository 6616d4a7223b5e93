// The fields of every message in wire order, written once for both directions: `fields(archive, message)`
// with a WireWriter (message const) or a WireReader (message filled in). The grammar that this implements
// stands in codec.cpp; the journal uses the same fields for what it has in common with the channel.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <optional>
#include <type_traits>
#include <vector>

#include "rendezvous/protocol/channel_messages.hpp"
#include "rendezvous/protocol/wire.hpp"

namespace muster::rendezvous::wire {

inline constexpr std::int32_t kMaxCount = 1 << 24;  ///< of nodes, workers, ranks, rounds in one message
inline constexpr std::uint32_t kMaxLines = 30;
inline constexpr std::uint32_t kMaxRestartLines = 256;
inline constexpr std::uint32_t kMaxPolicyValues = 64;

template <class A>
inline constexpr bool kReads = std::same_as<A, WireReader>;

template <class M, class T>
concept Of = std::same_as<std::remove_const_t<M>, T>;

void number(auto& a, auto& value, std::int32_t low, std::int32_t high) {
  a.i32(value);
  if constexpr (kReads<std::remove_reference_t<decltype(a)>>)
    if (value < low || value > high) a.fail("the number " + std::to_string(value) + " is out of range");
}

void count(auto& a, auto& value, std::int32_t low = 0) { number(a, value, low, kMaxCount); }

template <class E>
void enumeration(WireReader& a, E& value, E last, E first = static_cast<E>(1)) {
  std::uint8_t raw = 0;
  a.u8(raw);
  if (raw < static_cast<std::uint8_t>(first) || raw > static_cast<std::uint8_t>(last))
    a.fail("the kind " + std::to_string(raw) + " does not exist");
  value = static_cast<E>(raw);
}
template <class E>
void enumeration(WireWriter& a, const E& value, E, E = static_cast<E>(1)) {
  a.u8(static_cast<std::uint8_t>(value));
}

inline void duration(WireReader& a, Duration& value) {
  std::int64_t ns = 0;
  a.i64(ns);
  value = Duration(ns);
}
inline void duration(WireWriter& a, const Duration& value) { a.i64(value.count()); }

/// u32 count, then the items. No more is allocated than has arrived.
template <class T, class Each>
void list(WireReader& a, std::vector<T>& items, std::uint32_t max, Each each) {
  std::uint32_t size = 0;
  a.u32(size);
  if (size > max) a.fail(std::to_string(size) + " items, " + std::to_string(max) + " is the limit");
  for (std::uint32_t i = 0; i < size && a.ok(); ++i) each(a, items.emplace_back());
}
/// Those beyond `max` are left out.
template <class T, class Each>
void list(WireWriter& a, const std::vector<T>& items, std::uint32_t max, Each each) {
  const auto size = std::min<std::size_t>(items.size(), max);
  a.u32(static_cast<std::uint32_t>(size));
  for (std::size_t i = 0; i < size; ++i) each(a, items[i]);
}

template <class T, class Each>
void optional(WireReader& a, std::optional<T>& value, Each each) {
  bool present = false;
  a.boolean(present);
  if (present) each(a, value.emplace());
}
template <class T, class Each>
void optional(WireWriter& a, const std::optional<T>& value, Each each) {
  a.boolean(value.has_value());
  if (value) each(a, *value);
}

template <std::size_t N>
void bytes(WireReader& a, std::array<char, N>& value) {
  a.raw(value.data(), N);
}
template <std::size_t N>
void bytes(WireWriter& a, const std::array<char, N>& value) {
  a.raw({value.data(), N});
}

void fields(auto& a, Of<NodeOffer> auto& m) {
  a.name(m.node);
  a.line(m.host);
  a.line(m.address);
  a.u16(m.store_port);
  number(a, m.local_workers, 1, 65536);
  a.name(m.role);
  optional(a, m.preferred_group_rank, [](auto& b, auto& rank) { count(b, rank); });
  a.boolean(m.hosts_endpoint);
}

void fields(auto& a, Of<ExitCause> auto& m) {
  enumeration(a, m.kind, ExitCause::Kind::start_failed, ExitCause::Kind::exited);
  a.i32(m.value);
  a.boolean(m.stopped_by_muster);
  a.text(m.evidence);
}

void fields(auto& a, Of<WorkerFailure> auto& m) {
  a.name(m.node);
  a.line(m.host);
  number(a, m.rank, -1, kMaxCount);
  number(a, m.local_rank, -1, kMaxCount);
  a.i32(m.pid);
  count(a, m.round);
  a.i64(m.unix_time_ms);
  a.i64(m.lived_ms);
  fields(a, m.cause);
  a.text(m.message);
  list(a, m.last_lines, kMaxLines, [](auto& b, auto& line) { b.line(line); });
  a.text(m.log_path);
}

void fields(auto& a, Of<Join> auto& m) { fields(a, m.offer); }

void fields(auto& a, Of<Resume> auto& m) {
  fields(a, m.offer);
  count(a, m.round);
  count(a, m.group_rank);
  count(a, m.first_rank);
  a.boolean(m.workers_alive);
}

void fields(auto& a, Of<WorkerFailed> auto& m) {
  count(a, m.round);
  fields(a, m.failure);
}

void fields(auto& a, Of<WorkersSafe> auto& m) {
  count(a, m.round);
  a.i64(m.step);
}

void fields(auto& a, Of<WorkersStopped> auto& m) { count(a, m.round); }
void fields(auto& a, Of<WorkersSucceeded> auto& m) { count(a, m.round); }

void fields(auto& a, Of<Progress> auto& m) {
  count(a, m.round);
  a.i64(m.step);
}

void fields(auto& a, Of<Leave> auto& m) { a.text(m.reason); }
void fields(auto&, Of<Heartbeat> auto&) {}

void fields(auto& a, Of<Waiting> auto& m) { a.text(m.reason); }

void fields(auto& a, Of<Assignment> auto& m) {
  count(a, m.round, 1);
  count(a, m.group_rank);
  count(a, m.group_world_size, 1);
  count(a, m.first_rank);
  count(a, m.world_size, 1);
  count(a, m.first_role_rank);
  count(a, m.role_world_size, 1);
  count(a, m.restart_count);
  count(a, m.max_restarts);
  a.line(m.master_addr);
  a.u16(m.master_port);
  a.text(m.reason);
  duration(a, m.forming_took);
}

void fields(auto& a, Of<Drain> auto& m) {
  count(a, m.round);
  duration(a, m.grace);
  a.text(m.reason);
}

void fields(auto& a, Of<StopWorkers> auto& m) {
  count(a, m.round);
  a.text(m.reason);
}

void fields(auto& a, Of<Outcome> auto& m) {
  enumeration(a, m.kind, OutcomeKind::rendezvous_failed, OutcomeKind::succeeded);
  a.text(m.reason);
  optional(a, m.first_failure, [](auto& b, auto& failure) { fields(b, failure); });
  list(a, m.restarts, kMaxRestartLines, [](auto& b, auto& line) { b.line(line); });
  count(a, m.max_restarts);
}

void fields(auto& a, Of<JobEnded> auto& m) { fields(a, m.outcome); }

void fields(auto& a, Of<Refused> auto& m) {
  enumeration(a, m.code, RefusalCode::malformed);
  a.text(m.reason);
}

void fields(auto& a, Of<PolicyValue> auto& m) {
  a.name(m.name);
  a.line(m.value);
}

void fields(auto& a, Of<Hello> auto& m) {
  enumeration(a, m.role, PeerRole::operator_);
  if (m.role == PeerRole::agent) {
    a.name(m.job);
    a.name(m.node);
  } else {
    a.text(m.job, kMaxNameBytes);
    a.text(m.node, kMaxNameBytes);
  }
  a.u64(m.instance);
  list(a, m.policy, kMaxPolicyValues, [](auto& b, auto& value) { fields(b, value); });
  bytes(a, m.nonce);
}

void fields(auto& a, Of<Challenge> auto& m) {
  bytes(a, m.nonce);
  a.boolean(m.token_required);
  bytes(a, m.proof);
}

void fields(auto& a, Of<Proof> auto& m) { bytes(a, m.proof); }

void fields(auto& a, Of<Welcome> auto& m) {
  a.u64(m.incarnation);
  a.u32(m.heartbeat_interval_ms);
  a.u32(m.heartbeat_timeout_ms);
}

void fields(auto& a, Of<OperatorRequest> auto& m) {
  enumeration(a, m.verb, OperatorVerb::stop_job);
  a.text(m.job, kMaxNameBytes);
  a.text(m.node, kMaxNameBytes);
  count(a, m.min_nodes);
  count(a, m.max_nodes);
}

}  // namespace muster::rendezvous::wire
