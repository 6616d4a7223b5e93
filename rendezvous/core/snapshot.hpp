// Everything a Job knows, as plain values: what a journal writes and reads. Instants are those of the clock
// that the job was stepped with; restoring shifts them, so that the time during which there was no daemon is
// not counted.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/core/change_budget.hpp"
#include "rendezvous/core/cooldown.hpp"
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

/// A failure of which it is not known yet whether it was the first: others have not been heard since the daemon came back.
struct Suspect {
  NodeId node;
  WorkerFailure failure;
  Instant at{};  ///< when that worker ended
  bool operator==(const Suspect&) const = default;
};

/// Was `a` the cause, of these two? What ended first was, unless both came within a moment: then whoever was killed,
/// since a worker may exit, or abort itself, because another one is gone.
bool comes_before(const Suspect& a, const Suspect& b);

/// How the present round comes to its end, while it drains or stops, and why the next one is needed.
struct Ending {
  std::string cause;               ///< what began it
  std::vector<std::string> then;   ///< what happened since
  bool cause_is_known = true;      ///< else `cause` says that it is not: the daemon was away
  std::optional<Suspect> suspect;  ///< of what is heard, what came first; judged once all have spoken
  std::optional<Outcome> outcome;  ///< the job ends with it once drained
  bool charged = false;  ///< it has cost a restart; whoever goes missing meanwhile costs no second one
  Instant deadline{};    ///< of the phase

  /// What is told to agents: "restart 1 of 3 after ...; then n2 was lost (...)".
  std::string reason() const;
  bool operator==(const Ending&) const = default;
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
