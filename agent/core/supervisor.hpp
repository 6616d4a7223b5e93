// What this node's agent does with its workers, as a pure state machine: events in, effects out. It owns no
// process, socket, timer or clock; the shell (agent/agent.hpp) turns effects into deeds and deeds into
// events.
//
// One worker group lives at a time. Its life, with what ends each stage:
//
//   joining   a fresh store is open and Join is sent; an Assignment comes
//   running   all of its workers were started; one fails, all succeed, or a stop is asked for
//   stopping  each running worker was signalled once, after SIGTERM from outside those that listen once they have
//             saved; StopLadder bounds this
//   sweeping  no main process is left; the shell ends what they left behind
//   over      nothing of the group is alive; what comes next depends on why it ended:
//             signal from outside -> Finish; JobEnded -> Finish; StopWorkers -> WorkersStopped, joining;
//             all exited with 0 -> WorkersSucceeded, and wait; a failure was reported -> wait
//
// Whatever was asked for first, later and stronger wishes only shorten what runs.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/events.hpp"
#include "agent/core/restart_phases.hpp"
#include "agent/core/stop_ladder.hpp"
#include "agent/core/vitals.hpp"
#include "agent/core/worker_group.hpp"

namespace muster::agent {

/// Grace: from the first signal to SIGKILL.
struct Graces {
  Duration stop = std::chrono::seconds(30);     ///< the job ends
  Duration restart = std::chrono::seconds(30);  ///< a worker failed, here or elsewhere
  Duration rescale = std::chrono::seconds(30);  ///< the set of nodes changes
  Duration hurried = std::chrono::seconds(3);   ///< after a second signal from outside; a third kills at once
};

struct SupervisorOptions {
  rendezvous::NodeOffer offer;  ///< store_port is filled in for each round
  Graces graces;
  Duration after_kill_limit = std::chrono::seconds(5);
  Duration sweep_limit = std::chrono::seconds(5);
  Duration progress_interval = std::chrono::seconds(1);  ///< the daemon hears of steps so often at most
  std::optional<Duration> progress_limit = {};  ///< a worker that tells of no step for longer is stuck
  SuccessNeeds success_needs = SuccessNeeds::exit_0;
};

inline constexpr std::size_t kMaxRoundRecords = 100;  ///< of the newest rounds

class Supervisor {
 public:
  explicit Supervisor(SupervisorOptions options);

  /// What has to be done now, in this order. After Finish every event is ignored.
  std::vector<Effect> step(const Event& event, Instant now);

  /// When to send a Tick at the latest; nothing: no need.
  std::optional<Instant> wake_at() const;

  /// What it waits for, as a sentence.
  std::string reason() const;

  AgentState state() const;
  Vitals vitals(Instant now) const;

  const WorkerGroup& group() const { return group_; }
  const std::deque<RoundRecord>& rounds() const { return rounds_; }
  bool finished() const { return finished_; }

 private:
  enum class Sweep { not_yet, asked, done };

  void on(const Begin& event, Instant now);
  void on(const StoreOpened& event, Instant now);
  void on(const StoreFailed& event, Instant now);
  void on(const FromDaemon& event, Instant now);
  void on(const WorkerStarted& event, Instant now);
  void on(const MainEnded& event, Instant now);
  void on(const RestKilled& event, Instant now);
  void on(const WorkerEnded& event, Instant now);
  void on(const WorkerOutput& event, Instant now);
  void on(const WorkerState& event, Instant now);
  void on(const GroupSwept& event, Instant now);
  void on(const StopSignal& event, Instant now);
  bool is_echo(const StopSignal& event, Instant now);
  void on(const WarningSignal& event, Instant now);
  void on(const SignalPassedOn& event, Instant now);
  void on(const WorkerListens& event, Instant now);
  void on(const WorkerDeaf& event, Instant now);
  void on(const WorkerSafe& event, Instant now);
  void on(const WorkerDone& event, Instant now);
  void on(const WorkerProgress& event, Instant now);
  void on(const Tick& event, Instant now);

  void hear(const rendezvous::Waiting& message, Instant now);
  void hear(const rendezvous::Assignment& message, Instant now);
  void hear(const rendezvous::Drain& message, Instant now);
  void hear(const rendezvous::StopWorkers& message, Instant now);
  void hear(const rendezvous::JobEnded& message, Instant now);
  void hear(const rendezvous::Refused& message, Instant now);
  void hear(const rendezvous::Inject& message, Instant now);

  void open_store();
  void ask_to_save(int local_rank, Duration grace);
  std::size_t ask_listeners_to_save(Instant now);
  void hurry(int signal_number, Instant now);
  void stop_workers(int signal_number, Duration grace, Instant now);
  void signal_savers();
  void signal_running(int signal_number, SignalTarget target);
  void signal(int local_rank, int signal_number, SignalTarget target);
  void climb_ladder(Instant now);
  void say_who_is_killed(std::vector<int> running);
  void answer_drain_if_all_safe();
  void report_failure(const WorkerOutput& output, Instant now);
  void settle(Instant now);
  void decide_after_group(Instant now);
  void rejoin(Instant now);
  void announce_round(Instant now);
  void finish(rendezvous::Outcome outcome, int stop_signal);

  bool has_process(int local_rank) const;
  bool is_member(int local_rank) const { return in_round() && local_rank < group_.size(); }
  bool in_round() const { return assignment_.has_value(); }
  bool round_is(int round) const { return in_round() && assignment_->round == round; }
  int rank_of(int local_rank) const { return assignment_->first_rank + local_rank; }
  std::string name_of(int local_rank) const;
  std::string round_sentence(const RestartPhases& phases) const;
  std::string stop_sentence(const StopSignal& event, std::size_t savers, Instant now) const;
  std::string grace_passed() const;
  Duration hurried_grace() const;
  Duration stop_grace() const;
  void say(std::string sentence) { effects_.push_back(Say{std::move(sentence)}); }
  void send(rendezvous::AgentMessage message) { effects_.push_back(SendToDaemon{std::move(message)}); }

  SupervisorOptions options_;
  std::vector<Effect> effects_;  ///< of the step that is running

  int store_number_ = 0;        ///< of the newest store
  int round_store_number_ = 0;  ///< of the round that runs; 0: not served here
  std::string waiting_reason_ = "nothing was heard from the rendezvous yet";

  std::optional<rendezvous::Assignment> assignment_;  ///< while there is a group
  int last_round_ = 0;
  int restart_count_ = 0;  ///< of that round, or with its end
  std::string why_ended_;  ///< that round, once StopWorkers has said so
  int max_restarts_ = 0;
  bool announced_ = false;  ///< the round, to the user
  std::deque<RoundRecord> rounds_;
  PhaseClock phases_;
  WorkerGroup group_;
  StopLadder ladder_;
  Sweep sweep_ = Sweep::not_yet;
  bool draining_ = false;
  Duration drain_grace_{};
  bool drain_answered_ = false;
  std::optional<Instant> progress_told_at_;
  bool told_success_ = false;
  bool stop_asked_ = false;  ///< by StopWorkers
  std::optional<Instant>
      savers_signal_at_;  ///< those that a SIGTERM made save get it themselves then, at the latest

  std::optional<rendezvous::Outcome> outcome_;             ///< by JobEnded, or why we give up
  std::optional<rendezvous::WorkerFailure> last_failure_;  ///< that was told, of the newest round
  int stop_signal_ = 0;
  std::string stopped_by_;    ///< that signal, and where it came from
  int rehearsed_signal_ = 0;  ///< that an operator sends to this launcher
  int stop_signals_seen_ = 0;
  StopSignal last_stop_signal_;
  Instant last_stop_signal_at_{};
  std::optional<Duration> used_grace_;  ///< once workers of the newest round were killed
  std::vector<std::string> survivors_;
  bool finished_ = false;
};

}  // namespace muster::agent
