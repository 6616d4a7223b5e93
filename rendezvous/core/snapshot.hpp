// Everything a Job knows, as plain values: what a journal writes and reads. Instants are those of the clock
// that the job was stepped with; restoring shifts them, so that the time during which there was no daemon is
// not counted.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "rendezvous/core/change_budget.hpp"
#include "rendezvous/core/cooldown.hpp"
#include "rendezvous/core/ending.hpp"
#include "rendezvous/core/gathering.hpp"
#include "rendezvous/core/membership.hpp"
#include "rendezvous/core/policy.hpp"
#include "rendezvous/core/restart_ledger.hpp"
#include "rendezvous/core/round.hpp"

namespace muster::rendezvous {

enum class Phase : std::uint8_t {
  gathering,  ///< no round: nodes join
  running,    ///< a round works
  draining,   ///< it is announced to end; workers save
  stopping,   ///< it ends; workers stop
  over        ///< the job has its outcome
};

struct JobSnapshot {
  Instant taken_at{};
  std::string id;
  JobPolicy policy;
  Phase phase = Phase::gathering;
  bool begun = false;
  int last_round = 0;
  int heard_round = 0;
  Gathering gathering;
  std::optional<Round::State> round;  ///< while running, draining, stopping
  Ending ending;
  Settle growth;  ///< joiners since the round began
  bool starts_are_spared = false;
  Instant phase_since{};
  Instant running_since{};                 ///< of the present round
  std::optional<Instant> first_success;    ///< of the present round
  std::optional<Instant> unclaimed_until;  ///< of an adopted round
  std::optional<Instant> back_at;          ///< when the daemon last came back, with its journal or without
  Membership::Members members;
  RestartLedger::State ledger;
  Cooldown::Strikes strikes;
  std::deque<Instant> changes;
  SeatMemory::Places places;
  Outcome outcome;       ///< once over
  int leave_signal = 0;  ///< of the last Leave
  NewsKey news_told{};
  Instant next_news{};
  bool operator==(const JobSnapshot&) const = default;
};

/// The same snapshot as if it had been taken at `now`.
JobSnapshot shifted_to(JobSnapshot snapshot, Instant now);

}  // namespace muster::rendezvous
