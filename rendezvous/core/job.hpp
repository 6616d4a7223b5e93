// One job's rendezvous: who is in, who has which rank, when a round starts, why it ends. Pure: no socket, no
// clock, no thread. Give it what happened and the time; it says what to send, and when it wants to be woken.
//
//   gathering --enough nodes--> running --worker failed, node lost--> stopping --all stopped--> gathering
//                               running --node joins or leaves--> draining --all safe--> stopping
//                               any --all succeeded, budget used, operator--> over
//
// The rules, each with its reason in docs/design/rendezvous.md:
//   - a node that leaves or is lost never closes the job for the others while min_nodes can be reached;
//   - the first failure of a round, in the order of events, is its cause; the others are consequences;
//   - a failure costs one restart of the job's one budget; a membership change costs none;
//   - nodes that are missing below min_nodes cost one restart, and then a replacement has the join deadline;
//   - newcomers do not end one round after the other before it has made its first step;
//   - once the job is over everybody is told at once, and there is no barrier.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/core/event.hpp"
#include "rendezvous/core/snapshot.hpp"

namespace muster::rendezvous {

class Job {
 public:
  /// `policy` must have passed validate(). `places`: where nodes sat in an earlier job of this name.
  Job(std::string id, JobPolicy policy, SeatMemory places = SeatMemory());

  /// What follows from one event. Messages to one node are to be sent in the order given. The same events at
  /// the same times give the same effects, so a journal may keep the events since a snapshot.
  std::vector<Effect> step(const Event& event, Instant now);

  /// Whether step() may decide something because of `event`: what a journal has to keep. To be asked before it.
  bool matters(const Event& event) const;

  /// When the next Tick is wanted; it may change with every step.
  std::optional<Instant> wake_at() const;

  /// Why things are as they are, in one sentence.
  std::string reason(Instant now) const;

  /// Whether a connection that says it speaks for `offer.node` must be turned away, and why. To be asked
  /// before its first message is stepped; a connection of the same name that is silent is the caller's to
  /// close first.
  std::optional<Refused> refusal(const NodeOffer& offer, Instant now) const;

  Phase phase() const { return phase_; }
  bool over() const { return phase_ == Phase::over; }
  /// Once it is over.
  const Outcome& outcome() const { return outcome_; }
  const std::string& id() const { return id_; }
  const JobPolicy& policy() const { return policy_; }
  const Membership& membership() const { return members_; }
  const SeatMemory& places() const { return places_; }
  /// The live round; nothing while gathering and when over.
  const std::optional<Round>& round() const { return round_; }

  /// Why a node that has joined sits in no round yet.
  std::string waiting_reason(const NodeId& node, Instant now) const;

  JobSnapshot snapshot(Instant now) const;
  /// Goes on as if no time had passed since the snapshot. Step Restarted next if connections were lost.
  static Job restore(const JobSnapshot& snapshot, Instant now);

 private:
  enum class Cost { nothing, restart };
  enum class Cause { known, unknown };

  // Events (job_events.cpp).
  void on(const FromAgent& event);
  void on(const ConnectionLost& event);
  void on(const Tick&);
  void on(const Restarted&);
  void on(const CloseRoster&);
  void on(const DrainNode& event);
  void on(const Scale& event);
  void on(const ClearCooldown& event);
  void on(const StopJob& event);
  void on(const Rehearse& event);  // job_rehearsal.cpp
  void hear(const NodeId& node, const Join& join);
  void hear(const NodeId& node, const WorkerFailed& failed);
  void hear(const NodeId& node, const WorkersSafe& safe);
  void hear(const NodeId& node, const WorkersStopped& stopped);
  void hear(const NodeId& node, const WorkersSucceeded& succeeded);
  void hear(const NodeId& node, const Progress& progress);
  void hear(const NodeId& node, const Leave& leave);
  void hear(const NodeId& node, const Heartbeat&);
  bool settle_claim(const NodeOffer& offer);
  bool seated_join(const Member& member, const Join& join);
  bool lose_those_away();

  // Coming back (job_resume.cpp).
  void hear(const NodeId& node, const Resume& resume);
  bool round_is_vouched_for() const;
  void learn(int last_round, int restarts);
  void adopt(const Resume& resume);
  void remind(const NodeId& node);
  void meet_neighbour(const NodeId& node);
  void ask_for_place(const NodeId& node);
  bool lose_expected(const NodeId& node, int last_round);
  bool may_be_old_news() const;
  bool others_may_know_more(Instant at) const;
  void suspect(Suspect suspect);
  bool judge_suspect();
  void hear_of_end(const Join& join);
  void stop_round_for_unknown_cause();
  void name_cause(std::string reason, Cost cost);

  // Faults on purpose (job_rehearsal.cpp).
  const Seat* seat_of_rank(int rank) const;
  std::string no_such_rank(int rank) const;

  // What follows from time and membership (job_rounds.cpp).
  void advance();
  bool advance_once();
  bool advance_gathering();
  bool advance_running();
  bool advance_draining();
  bool advance_stopping();
  void lose(NodeId node, std::string why);  ///< by value: both may belong to the member that goes
  void leave(const NodeId& node, const std::string& why, bool drained, int signal_number = 0);
  void gone(const NodeId& node, const char* how, const std::string& sentence, int staying_before);
  void missing(const NodeId& node, const char* how, const std::string& sentence);
  void also(const std::string& sentence);
  void dismiss(NodeId node);
  void form();
  void gather();
  void drain(std::string reason, std::optional<Outcome> outcome = {});
  void stop_round(std::string reason, Cost cost = Cost::nothing, Cause cause = Cause::known);
  StopWorkers stop_order() const;
  std::optional<std::string> charge(const NodeId& node, const WorkerFailure& failure);
  void finish_drain();
  void note_change();
  void give_up_laggards();
  void give_up_unclaimed();
  void release_finished();
  void end(OutcomeKind kind, std::string reason, std::optional<WorkerFailure> first_failure = {});
  void end(Outcome outcome);
  bool live(int round) const;
  int staying() const;
  Roster roster() const;
  int usable_spares() const;
  std::vector<NodeId> usable_names() const;
  std::optional<Instant> spared_until(Instant now) const;
  Instant growth_at(Instant now) const;
  std::optional<Instant> gathering_wake() const;
  std::optional<Instant> running_wake() const;
  Outcome outcome_of(OutcomeKind kind, std::string reason) const;
  void enter(Phase phase);
  void tell(const NodeId& node, DaemonMessage message);
  void answer(bool done, std::string text, std::string event = {});

  // Sentences (job_reasons.cpp).
  void news();
  bool news_wanted() const;
  NewsKey news_key() const;
  std::string gathering_reason(Instant now) const;
  std::string running_reason(Instant now) const;
  std::string unclaimed_reason() const;
  std::string away_reason(Instant now) const;
  std::string cooling_reason(const NodeId& node, Instant now) const;
  std::string joining_reason(const NodeId& node, Instant now) const;
  std::string ending_reason(Instant now) const;
  std::string forming_reason(int nodes) const;

  std::string id_;
  JobPolicy policy_;
  Phase phase_ = Phase::gathering;
  bool begun_ = false;
  int last_round_ = 0;   ///< that this job formed or adopted
  int heard_round_ = 0;  ///< that an agent was in, as it says
  Gathering gathering_;
  std::optional<Round> round_;
  Ending ending_;
  Settle growth_;
  bool starts_are_spared_ = false;  ///< newcomers wait for the first step of a round that has only begun
  Instant phase_since_{};
  Instant running_since_{};
  std::optional<Instant> first_success_;
  std::optional<Instant> unclaimed_until_;
  std::optional<Instant> back_at_;
  Membership members_;
  RestartLedger ledger_;
  Cooldown cooldown_;
  ChangeBudget changes_;
  SeatMemory places_;
  Outcome outcome_;
  int leave_signal_ = 0;
  NewsKey news_told_{};  ///< to all who wait
  Instant next_news_{};

  // Of one step.
  Instant now_{};
  std::vector<Effect> effects_;
  std::set<NodeId> newcomers_;  ///< they hear at once why they wait
};

constexpr int max_spares = 1024;            ///< beyond max_nodes; further nodes are refused
constexpr int max_local_workers = 100'000;  ///< of one node

}  // namespace muster::rendezvous
