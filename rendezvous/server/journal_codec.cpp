// The journal, version 5: what the daemon has to know to go on after its end. Primitive values are those of
// the channel (codec.cpp); an instant is i64 nanoseconds on the clock of the daemon that wrote it, and means
// nothing but its distance to the others of the same file.
//
//   journal = "MSTJ", u32 version, record*
//   record  = u32 length of payload, u64 XXH3-64 of type and payload, u8 type, payload
//   type 1  = snapshot: identity, then all of the job's state (JobSnapshot, field by field, in order), i64 ms since
//             1970 when it was taken, the newest events and rounds (JobHistory::State)
//   type 2  = event: name job, instant, u8 kind of event (its index in Event), its fields
//   type 3  = incarnation: name job, name node, line incarnation
//   map     = u32 count, that many (key, value)
//
// A job is its newest snapshot with all later events stepped at their times. Records of a job that has no
// snapshot before them do not occur.
#include "rendezvous/server/journal_codec.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include "rendezvous/protocol/fields.hpp"
#include "rendezvous/protocol/policy_values.hpp"

namespace muster::rendezvous {
namespace wire {
namespace {

constexpr std::uint32_t kMaxItems = 1 << 20;

void instant(WireReader& a, Instant& value) {
  std::int64_t ns = 0;
  a.i64(ns);
  value = Instant(Duration(ns));
}
void instant(WireWriter& a, const Instant& value) { a.i64(value.time_since_epoch().count()); }

constexpr auto kInstant = [](auto& a, auto& value) { instant(a, value); };
constexpr auto kFields = [](auto& a, auto& value) { fields(a, value); };
constexpr auto kText = [](auto& a, auto& value) { a.text(value); };
constexpr auto kName = [](auto& a, auto& value) { a.name(value); };

// Any sequence with emplace_back().
template <class Items, class Each>
void sequence(WireReader& a, Items& items, Each each) {
  std::uint32_t size = 0;
  a.u32(size);
  if (size > kMaxItems) a.fail("too many items");
  for (std::uint32_t i = 0; i < size && a.ok(); ++i) each(a, items.emplace_back());
}
template <class Items, class Each>
void sequence(WireWriter& a, const Items& items, Each each) {
  a.u32(static_cast<std::uint32_t>(items.size()));
  for (const auto& item : items) each(a, item);
}

template <class Key, class Value, class EachKey, class EachValue>
void mapping(WireReader& a, std::map<Key, Value>& items, EachKey each_key, EachValue each_value) {
  std::uint32_t size = 0;
  a.u32(size);
  if (size > kMaxItems) a.fail("too many items");
  for (std::uint32_t i = 0; i < size && a.ok(); ++i) {
    Key key{};
    each_key(a, key);
    each_value(a, items[key]);
  }
}
template <class Key, class Value, class EachKey, class EachValue>
void mapping(WireWriter& a, const std::map<Key, Value>& items, EachKey each_key, EachValue each_value) {
  a.u32(static_cast<std::uint32_t>(items.size()));
  for (const auto& [key, value] : items) {
    each_key(a, key);
    each_value(a, value);
  }
}

void policy(WireWriter& a, const JobPolicy& value) { sequence(a, policy_values(value), kFields); }
void policy(WireReader& a, JobPolicy& value) {
  std::vector<PolicyValue> values;
  sequence(a, values, kFields);
  auto read = policy_from_values(values);
  if (read)
    value = *read;
  else if (a.ok())
    a.fail(read.error().sentence());
}

}  // namespace

// In the namespace of the channel's fields(), so that neither hides the other.
void fields(auto& a, Of<Settle> auto& m) {
  auto& [first, last] = m;
  optional(a, first, kInstant);
  instant(a, last);
}

void fields(auto& a, Of<Gathering> auto& m) {
  auto& [since, enough_since, reforming, roster_closed, settle] = m;
  instant(a, since);
  optional(a, enough_since, kInstant);
  a.boolean(reforming);
  a.boolean(roster_closed);
  fields(a, settle);
}

void fields(auto& a, Of<Seat> auto& m) {
  auto& [node, first_rank, local_workers, first_role_rank, role_world_size, safe, failed, succeeded, stopped,
         gone, step, expected] = m;
  a.text(node, kMaxNameBytes);
  a.i32(first_rank);
  a.i32(local_workers);
  a.i32(first_role_rank);
  a.i32(role_world_size);
  for (auto* flag : {&safe, &failed, &succeeded, &stopped, &gone}) a.boolean(*flag);
  a.i64(step);
  a.text(expected, kMaxNameBytes);
}

constexpr auto kSeat = [](auto& a, auto& seat) { fields(a, seat); };

void fields(auto& a, Of<Round::State> auto& m) {
  auto& [number, adopted, restart_count, max_restarts, world_size, master_addr, master_port, reason,
         forming_took, seats] = m;
  a.i32(number);
  a.boolean(adopted);
  a.i32(restart_count);
  a.i32(max_restarts);
  a.i32(world_size);
  a.line(master_addr);
  a.u16(master_port);
  a.text(reason);
  duration(a, forming_took);
  sequence(a, seats, kSeat);
}

void fields(auto& a, Of<Suspect> auto& m) {
  auto& [node, failure, at] = m;
  a.name(node);
  fields(a, failure);
  instant(a, at);
}

void fields(auto& a, Of<Ending> auto& m) {
  auto& [cause, then, cause_is_known, suspect, outcome, charged, deadline] = m;
  a.text(cause);
  sequence(a, then, kText);
  a.boolean(cause_is_known);
  optional(a, suspect, [](auto& b, auto& its) { fields(b, its); });
  optional(a, outcome, kFields);
  a.boolean(charged);
  instant(a, deadline);
}

void fields(auto& a, Of<Member> auto& m) {
  auto& [offer, arrival, stand, away_until, away_by_itself, away_reason, leaving, drained, told] = m;
  fields(a, offer);
  a.u64(arrival);
  enumeration(a, stand, Stand::seated, Stand::between);
  optional(a, away_until, kInstant);
  a.boolean(away_by_itself);
  a.text(away_reason);
  a.text(leaving);
  a.boolean(drained);
  for (auto& number : told) a.i32(number);
}

void fields(auto& a, Of<RestartLedger::State> auto& m) {
  auto& [restarts, lines, charged_at, startup_code] = m;
  a.i32(restarts);
  sequence(a, lines, kText);
  sequence(a, charged_at, kInstant);
  optional(a, startup_code, [](auto& b, auto& code) { b.i32(code); });
}

void fields(auto& a, Of<SeatMemory::Place> auto& m) {
  auto& [group_rank, round] = m;
  a.i32(group_rank);
  a.i32(round);
}

// Finds the overloads above, which kFields cannot.
constexpr auto kState = [](auto& a, auto& value) { fields(a, value); };

void fields(auto& a, Of<JobSnapshot> auto& m) {
  auto& [taken_at, id, job_policy, phase, begun, last_round, heard_round, gathering, round, ending, growth,
         starts_are_spared, phase_since, running_since, first_success, unclaimed_until, back_at, members,
         ledger, strikes, changes, places, outcome, leave_signal, news_told, next_news] = m;
  instant(a, taken_at);
  a.name(id);
  policy(a, job_policy);
  enumeration(a, phase, Phase::over, Phase::gathering);
  a.boolean(begun);
  a.i32(last_round);
  a.i32(heard_round);
  fields(a, gathering);
  optional(a, round, kState);
  fields(a, ending);
  fields(a, growth);
  a.boolean(starts_are_spared);
  instant(a, phase_since);
  instant(a, running_since);
  optional(a, first_success, kInstant);
  optional(a, unclaimed_until, kInstant);
  optional(a, back_at, kInstant);
  mapping(a, members, kName, kState);
  fields(a, ledger);
  mapping(a, strikes, kName, [](auto& b, auto& times) { sequence(b, times, kInstant); });
  sequence(a, changes, kInstant);
  mapping(a, places, kName, kState);
  fields(a, outcome);
  a.i32(leave_signal);
  for (auto& number : news_told) a.i32(number);
  instant(a, next_news);
}

void fields(auto& a, Of<JobIdentity> auto& m) {
  auto& [incarnation, created_unix_ms, founding_policy, incarnations] = m;
  a.u64(incarnation);
  a.i64(created_unix_ms);
  sequence(a, founding_policy, kFields);
  mapping(a, incarnations, kName, [](auto& b, auto& line) { b.line(line); });
}

template <class Variant, class Each, std::size_t I = 0>
void alternative(WireReader& a, Variant& value, std::size_t index, Each each) {
  if constexpr (I == std::variant_size_v<Variant>) {
    a.fail("the kind " + std::to_string(index) + " does not exist");
  } else {
    if (index != I) return alternative<Variant, Each, I + 1>(a, value, index, each);
    each(a, value.template emplace<I>());
  }
}
template <class Variant, class Each>
void variant(WireReader& a, Variant& value, Each each) {
  std::uint8_t index = 0;
  a.u8(index);
  alternative(a, value, index, each);
}
template <class Variant, class Each>
void variant(WireWriter& a, const Variant& value, Each each) {
  a.u8(static_cast<std::uint8_t>(value.index()));
  std::visit([&](const auto& chosen) { each(a, chosen); }, value);
}

void fields(auto& a, Of<FromAgent> auto& m) {
  auto& [node, message] = m;
  a.name(node);
  variant(a, message, kFields);
}
void fields(auto& a, Of<ConnectionLost> auto& m) {
  auto& [node, kind, reason] = m;
  a.name(node);
  enumeration(a, kind, LossKind::silent, LossKind::closed);
  a.text(reason);
}
void fields(auto&, Of<Tick> auto&) {}
void fields(auto&, Of<Restarted> auto&) {}
void fields(auto&, Of<CloseRoster> auto&) {}
void fields(auto& a, Of<DrainNode> auto& m) {
  auto& [node] = m;
  a.text(node);
}
void fields(auto& a, Of<Scale> auto& m) {
  auto& [min_nodes, max_nodes] = m;
  a.i32(min_nodes);
  a.i32(max_nodes);
}
void fields(auto& a, Of<ClearCooldown> auto& m) {
  auto& [node] = m;
  a.text(node);
}
void fields(auto& a, Of<StopJob> auto& m) {
  auto& [reason] = m;
  a.text(reason);
}
void fields(auto& a, Of<Rehearse> auto& m) {
  auto& [rank, node, signal_number] = m;
  optional(a, rank, [](auto& b, auto& its) { b.i32(its); });
  a.text(node);
  a.i32(signal_number);
}

constexpr auto kEvent = [](auto& a, auto& event) { fields(a, event); };

void fields(auto& a, Of<JobEvent> auto& m) {
  auto& [unix_time_ms, text] = m;
  a.i64(unix_time_ms);
  a.text(text);
}
void fields(auto& a, Of<RoundRecord> auto& m) {
  auto& [number, nodes, workers, reason, end_reason, unix_time_ms, forming_took, formed_at, drain_at, stop_at,
         ended_at] = m;
  for (auto* value : {&number, &nodes, &workers}) a.i32(*value);
  a.text(reason);
  a.text(end_reason);
  a.i64(unix_time_ms);
  duration(a, forming_took);
  instant(a, formed_at);
  for (auto* at : {&drain_at, &stop_at, &ended_at}) optional(a, *at, kInstant);
}
constexpr auto kHistory = [](auto& a, auto& part) { fields(a, part); };
void fields(auto& a, Of<JobHistory::State> auto& m) {
  auto& [events, rounds] = m;
  sequence(a, events, kHistory);
  sequence(a, rounds, kHistory);
}

void fields(auto& a, Of<SnapshotRecord> auto& m) {
  auto& [identity, snapshot, taken_unix_ms, history] = m;
  fields(a, identity);
  fields(a, snapshot);
  a.i64(taken_unix_ms);
  fields(a, history);
}
void fields(auto& a, Of<EventRecord> auto& m) {
  auto& [job, at, event] = m;
  a.name(job);
  instant(a, at);
  variant(a, event, kEvent);
}
void fields(auto& a, Of<IncarnationRecord> auto& m) {
  auto& [job, node, incarnation] = m;
  a.name(job);
  a.name(node);
  a.line(incarnation);
}

constexpr auto kRecord = [](auto& a, auto& record) { fields(a, record); };

}  // namespace wire

namespace {

constexpr std::string_view kMagic = "MSTJ";

}  // namespace

std::string journal_header() {
  WireWriter out;
  out.raw(kMagic);
  out.u32(kJournalVersion);
  return std::move(out.bytes());
}

std::optional<Error> wrong_header(const std::string& path, std::string_view bytes) {
  if (!bytes.starts_with(kMagic))
    return Error{path, "not a journal of muster", "move it away to start without"};
  WireReader in(bytes.substr(kMagic.size()));
  std::uint32_t version = 0;
  in.u32(version);
  if (version == kJournalVersion) return std::nullopt;
  return Error{
      path,
      fmt::format("a journal of version {}, and this musterd reads version {}", version, kJournalVersion),
      "use the musterd that wrote it, or move the journal away"};
}

std::string encode(const JournalRecord& record) {
  WireWriter body;
  body.u8(static_cast<std::uint8_t>(record.index() + 1));
  std::visit([&](const auto& r) { wire::kRecord(body, r); }, record);
  WireWriter out;
  out.u32(static_cast<std::uint32_t>(body.bytes().size() - 1));
  out.u64(XXH3_64bits(body.bytes().data(), body.bytes().size()));
  out.raw(body.bytes());
  return std::move(out.bytes());
}

Result<ReadRecord> read_record(std::string_view bytes) {
  const auto bad = [](std::string why) { return Error{"record", std::move(why)}; };
  WireReader header(bytes);
  std::uint32_t size = 0;
  std::uint64_t sum = 0;
  header.u32(size);
  header.u64(sum);
  if (!header.ok() || header.left() < std::size_t{1} + size) return bad("cut off");
  const auto body = bytes.substr(kRecordHeaderBytes - 1, std::size_t{1} + size);
  if (size > kMaxRecordBytes || XXH3_64bits(body.data(), body.size()) != sum) return bad("damaged");
  ReadRecord read{{}, kRecordHeaderBytes + size};
  WireReader in(body);
  std::uint8_t type = 0;
  in.u8(type);
  wire::alternative(in, read.record, static_cast<std::size_t>(type) - 1, wire::kRecord);
  if (!in.finished()) return bad("unreadable, " + in.wrong());
  return read;
}

}  // namespace muster::rendezvous
