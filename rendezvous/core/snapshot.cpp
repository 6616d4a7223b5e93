#include "rendezvous/core/snapshot.hpp"

namespace muster::rendezvous {

JobSnapshot shifted_to(JobSnapshot snapshot, Instant now) {
  const Duration by = now - snapshot.taken_at;
  const auto shift = [by](Instant& at) { at += by; };
  const auto shift_if = [by](std::optional<Instant>& at) {
    if (at) *at += by;
  };
  const auto shift_settle = [&](Settle& settle) {
    shift_if(settle.first);
    shift(settle.last);
  };
  shift(snapshot.taken_at);
  shift(snapshot.gathering.since);
  shift_if(snapshot.gathering.enough_since);
  shift_settle(snapshot.gathering.settle);
  shift_settle(snapshot.growth);
  shift(snapshot.ending.deadline);
  shift(snapshot.next_news);
  shift(snapshot.phase_since);
  shift(snapshot.running_since);
  shift_if(snapshot.first_success);
  shift_if(snapshot.unclaimed_until);
  shift_if(snapshot.back_at);
  if (snapshot.ending.suspect) shift(snapshot.ending.suspect->at);
  for (auto& [node, member] : snapshot.members) shift_if(member.away_until);
  for (auto& [node, times] : snapshot.strikes)
    for (Instant& at : times) shift(at);
  for (Instant& at : snapshot.changes) shift(at);
  for (Instant& at : snapshot.ledger.charged_at) shift(at);
  return snapshot;
}

}  // namespace muster::rendezvous
