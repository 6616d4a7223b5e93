// The fields of every message in wire order, written once for both directions: `fields(archive, message)`
// with a WireWriter (message const) or a WireReader (message filled in). The grammar that this implements
// stands in codec.cpp; the journal uses the same fields for what it has in common with the channel.
//
// Each message is taken apart by structured bindings: a field that is added to it and forgotten here does not
// compile.
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
inline constexpr std::int32_t kMaxLocalWorkers = 65536;
inline constexpr std::int32_t kMaxSignal = 64;
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
  auto& [node, host, address, store_port, local_workers, role, group_rank, hosts_endpoint, incarnation] = m;
  a.name(node);
  a.line(host);
  a.line(address);
  a.u16(store_port);
  number(a, local_workers, 1, kMaxLocalWorkers);
  a.name(role);
  optional(a, group_rank, [](auto& b, auto& rank) { count(b, rank); });
  a.boolean(hosts_endpoint);
  a.line(incarnation);
}

void fields(auto& a, Of<ExitCause> auto& m) {
  auto& [kind, value, stopped_by_muster, evidence] = m;
  enumeration(a, kind, ExitCause::Kind::start_failed, ExitCause::Kind::exited);
  a.i32(value);
  a.boolean(stopped_by_muster);
  a.text(evidence);
}

void fields(auto& a, Of<WorkerFailure> auto& m) {
  auto& [node, host, rank, local_rank, pid, round, unix_time_ms, lived_ms, initialised, permanent, cause,
         message, last_lines, log_path] = m;
  a.name(node);
  a.line(host);
  number(a, rank, -1, kMaxCount);
  number(a, local_rank, -1, kMaxCount);
  a.i32(pid);
  count(a, round);
  a.i64(unix_time_ms);
  a.i64(lived_ms);
  a.boolean(initialised);
  a.boolean(permanent);
  fields(a, cause);
  a.text(message);
  list(a, last_lines, kMaxLines, [](auto& b, auto& line) { b.line(line); });
  a.text(log_path);
}

void fields(auto& a, Of<Join> auto& m) {
  auto& [offer, last_round, restart_count, why_ended] = m;
  fields(a, offer);
  count(a, last_round);
  count(a, restart_count);
  a.text(why_ended);
}

void fields(auto& a, Of<Resume> auto& m) {
  auto& [offer, round, group_rank, group_world_size, first_rank, restart_count, workers_alive, next_node] = m;
  fields(a, offer);
  count(a, round);
  count(a, group_rank);
  count(a, group_world_size);
  count(a, first_rank);
  count(a, restart_count);
  a.boolean(workers_alive);
  a.text(next_node, kMaxNameBytes);
}

void fields(auto& a, Of<WorkerFailed> auto& m) {
  auto& [round, failure, age] = m;
  count(a, round);
  fields(a, failure);
  duration(a, age);
}

void fields(auto& a, Of<WorkersSafe> auto& m) {
  auto& [round, step] = m;
  count(a, round);
  a.i64(step);
}

void fields(auto& a, Of<WorkersStopped> auto& m) {
  auto& [round] = m;
  count(a, round);
}

void fields(auto& a, Of<WorkersSucceeded> auto& m) {
  auto& [round] = m;
  count(a, round);
}

void fields(auto& a, Of<Progress> auto& m) {
  auto& [round, step] = m;
  count(a, round);
  a.i64(step);
}

void fields(auto& a, Of<Leave> auto& m) {
  auto& [reason, signal_number] = m;
  a.text(reason);
  number(a, signal_number, 0, kMaxSignal);
}

void fields(auto&, Of<Heartbeat> auto&) {}

void fields(auto& a, Of<Waiting> auto& m) {
  auto& [reason] = m;
  a.text(reason);
}

void fields(auto& a, Of<Assignment> auto& m) {
  auto& [round, group_rank, group_world_size, first_rank, world_size, first_role_rank, role_world_size,
         restart_count, max_restarts, master_addr, master_port, reason, forming_took, next_node] = m;
  count(a, round, 1);
  count(a, group_rank);
  count(a, group_world_size, 1);
  count(a, first_rank);
  count(a, world_size, 1);
  count(a, first_role_rank);
  count(a, role_world_size, 1);
  count(a, restart_count);
  count(a, max_restarts);
  a.line(master_addr);
  a.u16(master_port);
  a.text(reason);
  duration(a, forming_took);
  a.text(next_node, kMaxNameBytes);
}

void fields(auto& a, Of<Drain> auto& m) {
  auto& [round, grace, reason] = m;
  count(a, round);
  duration(a, grace);
  a.text(reason);
}

void fields(auto& a, Of<StopWorkers> auto& m) {
  auto& [round, reason, restart_count, cause_is_known] = m;
  count(a, round);
  a.text(reason);
  count(a, restart_count);
  a.boolean(cause_is_known);
}

void fields(auto& a, Of<Outcome> auto& m) {
  auto& [kind, reason, first_failure, restarts, max_restarts, stop_signal] = m;
  enumeration(a, kind, OutcomeKind::node_lost, OutcomeKind::succeeded);
  a.text(reason);
  optional(a, first_failure, [](auto& b, auto& failure) { fields(b, failure); });
  list(a, restarts, kMaxRestartLines, [](auto& b, auto& line) { b.line(line); });
  count(a, max_restarts);
  number(a, stop_signal, 0, kMaxSignal);
}

void fields(auto& a, Of<JobEnded> auto& m) {
  auto& [outcome] = m;
  fields(a, outcome);
}

void fields(auto& a, Of<Refused> auto& m) {
  auto& [code, reason] = m;
  enumeration(a, code, RefusalCode::malformed);
  a.text(reason);
}

void fields(auto& a, Of<Inject> auto& m) {
  auto& [rank, signal_number] = m;
  optional(a, rank, [](auto& b, auto& its) { count(b, its); });
  number(a, signal_number, 1, kMaxSignal);
}

void fields(auto& a, Of<PolicyValue> auto& m) {
  auto& [name, value] = m;
  a.name(name);
  a.line(value);
}

void fields(auto& a, Of<Hello> auto& m) {
  auto& [role, job, node, incarnation, policy, nonce, job_incarnation] = m;
  enumeration(a, role, PeerRole::operator_);
  if (role == PeerRole::agent) {
    a.name(job);
    a.name(node);
  } else {
    a.text(job, kMaxNameBytes);
    a.text(node, kMaxNameBytes);
  }
  a.line(incarnation);
  list(a, policy, kMaxPolicyValues, [](auto& b, auto& value) { fields(b, value); });
  bytes(a, nonce);
  a.u64(job_incarnation);
}

void fields(auto& a, Of<Challenge> auto& m) {
  auto& [nonce, token_required, proof] = m;
  bytes(a, nonce);
  a.boolean(token_required);
  bytes(a, proof);
}

void fields(auto& a, Of<Proof> auto& m) {
  auto& [proof] = m;
  bytes(a, proof);
}

void fields(auto& a, Of<Welcome> auto& m) {
  auto& [job_incarnation, heartbeat_interval_ms, heartbeat_timeout_ms, standing] = m;
  a.u64(job_incarnation);
  a.u32(heartbeat_interval_ms);
  a.u32(heartbeat_timeout_ms);
  a.boolean(standing);
}

void fields(auto& a, Of<OwnAddresses> auto& m) {
  auto& [addresses] = m;
  list(a, addresses, kMaxOwnAddresses, [](auto& b, auto& address) { b.line(address); });
}

void fields(auto& a, Of<StoreNode> auto& m) {
  auto& [node, address, first_rank, workers] = m;
  a.name(node);
  a.line(address);
  count(a, first_rank);
  number(a, workers, 0, kMaxLocalWorkers);
}

void fields(auto& a, Of<StoreClients> auto& m) {
  auto& [round, addresses, nodes] = m;
  count(a, round, 1);
  list(a, addresses, kMaxStoreClients, [](auto& b, auto& address) { b.line(address); });
  list(a, nodes, kMaxStoreNodes, [](auto& b, auto& node) { fields(b, node); });
}

void fields(auto& a, Of<OperatorRequest> auto& m) {
  auto& [verb, job, node, min_nodes, max_nodes, rank, signal_number] = m;
  enumeration(a, verb, OperatorVerb::rehearse);
  a.text(job, kMaxNameBytes);
  a.text(node, kMaxNameBytes);
  count(a, min_nodes);
  count(a, max_nodes);
  count(a, rank, -1);
  number(a, signal_number, 0, kMaxSignal);
}

}  // namespace muster::rendezvous::wire
