#include "agent/core/supervisor.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

namespace muster::agent {

using rendezvous::Outcome;
using rendezvous::OutcomeKind;

namespace {
Outcome outcome_of(OutcomeKind kind, std::string reason) { return {kind, std::move(reason), {}, {}, 0}; }
}  // namespace

Supervisor::Supervisor(SupervisorOptions options)
    : options_(std::move(options)), ladder_(options_.after_kill_limit) {}

std::vector<Effect> Supervisor::step(const Event& event, Instant now) {
  effects_.clear();
  if (finished_) return {};
  std::visit([&](const auto& known) { on(known, now); }, event);
  settle();
  return std::exchange(effects_, {});
}

// ---- joining -------------------------------------------------------------------------------------------

void Supervisor::on(const Begin&, Instant) { open_store(); }

void Supervisor::open_store() { effects_.push_back(OpenStore{++store_number_}); }

void Supervisor::on(const StoreOpened& event, Instant) {
  if (finished_ || in_round()) return;
  rendezvous::NodeOffer offer = options_.offer;
  offer.store_port = event.port;
  send(rendezvous::Join{std::move(offer), last_round_, restart_count_});
}

void Supervisor::on(const StoreFailed& event, Instant) {
  outcome_ = outcome_of(OutcomeKind::rendezvous_failed, event.why);
}

void Supervisor::on(const FromDaemon& event, Instant now) {
  std::visit([&](const auto& message) { hear(message, now); }, event.message);
}

void Supervisor::hear(const rendezvous::Waiting& message, Instant) {
  if (waiting_reason_ == message.reason) return;
  waiting_reason_ = message.reason;
  if (!in_round()) say(message.reason);
}

void Supervisor::hear(const rendezvous::Assignment& message, Instant) {
  if (in_round() || message.round <= last_round_) return;
  assignment_ = message;
  last_round_ = message.round;
  restart_count_ = message.restart_count;
  group_ = WorkerGroup(options_.offer.local_workers);
  ladder_.reset();
  sweep_ = Sweep::not_yet;
  draining_ = drain_answered_ = told_success_ = stop_asked_ = false;

  // A new round means that no worker of the old one is alive on any node: its store has served its time.
  if (round_store_number_ > 0) effects_.push_back(CloseStore{round_store_number_});
  round_store_number_ = store_number_;
  if (message.group_rank != 0) {
    effects_.push_back(CloseStore{store_number_});
    round_store_number_ = 0;
  }
  say(round_sentence());
  effects_.push_back(StartWorkers{message});
}

// ---- running -------------------------------------------------------------------------------------------

void Supervisor::on(const WorkerStarted& event, Instant) {
  group_.started(event.local_rank, event.pid, event.at);
}

void Supervisor::on(const WorkerEnded& event, Instant now) {
  const bool was_healthy = !group_.first_failure();
  group_.ended(event.local_rank, event.cause, event.unix_time_ms, now);
  if (was_healthy && group_.first_failure()) {
    const std::size_t others = group_.running().size();
    std::string sentence = name_of(event.local_rank) + " " + group_.at(event.local_rank).cause.sentence();
    if (others > 0)
      sentence += "; stopping the other " +
                  (others == 1 ? std::string("worker") : std::to_string(others) + " workers") + " here";
    say(std::move(sentence));
    stop_workers(SIGTERM, options_.graces.restart, now);
  }
  if (draining_) answer_drain_if_all_safe();
}

void Supervisor::on(const WorkerOutput& event, Instant) {
  group_.at(event.local_rank).output_taken = true;
  if (group_.first_failure() == event.local_rank) report_failure(event);
}

void Supervisor::report_failure(const WorkerOutput& output) {
  if (stop_signal_ != 0 || outcome_) return;
  const GroupMember& member = group_.at(output.local_rank);
  rendezvous::WorkerFailure failure;
  failure.node = options_.offer.node;
  failure.host = options_.offer.host;
  failure.rank = rank_of(output.local_rank);
  failure.local_rank = output.local_rank;
  failure.pid = member.pid;
  failure.round = assignment_->round;
  failure.unix_time_ms = member.ended_unix_ms;
  failure.lived_ms = std::chrono::duration_cast<std::chrono::milliseconds>(member.lived).count();
  failure.initialised = output.initialised || member.step >= 0;
  failure.permanent = output.permanent;
  failure.cause = member.cause;
  failure.message = output.message;
  failure.last_lines = output.last_lines;
  failure.log_path = output.log_path;
  send(rendezvous::WorkerFailed{assignment_->round, std::move(failure)});
}

void Supervisor::on(const WorkerListens& event, Instant) {
  if (!is_member(event.local_rank)) return;
  group_.at(event.local_rank).listens = true;
  if (draining_) effects_.push_back(AskToSave{event.local_rank, drain_grace_});
}

void Supervisor::on(const WorkerDeaf& event, Instant) {
  if (!is_member(event.local_rank)) return;
  group_.at(event.local_rank).listens = false;
  if (draining_) answer_drain_if_all_safe();
}

void Supervisor::on(const WorkerProgress& event, Instant now) {
  if (!is_member(event.local_rank)) return;
  group_.at(event.local_rank).step = event.step;
  if (progress_told_at_ && now - *progress_told_at_ < options_.progress_interval) return;
  progress_told_at_ = now;
  send(rendezvous::Progress{assignment_->round, event.step});
}

// ---- draining ------------------------------------------------------------------------------------------

void Supervisor::hear(const rendezvous::Drain& message, Instant) {
  if (!round_is(message.round) || draining_) return;
  draining_ = true;
  drain_grace_ = message.grace;
  say("round " + std::to_string(message.round) + " ends: " + message.reason);
  for (const int local_rank : group_.running())
    if (group_.at(local_rank).listens) effects_.push_back(AskToSave{local_rank, message.grace});
  answer_drain_if_all_safe();
}

void Supervisor::on(const WorkerSafe& event, Instant) {
  // The others may have heard of the drain before this node did, and all ranks act after the same step.
  if (!is_member(event.local_rank)) return;
  group_.at(event.local_rank).safe = true;
  group_.at(event.local_rank).step = event.step;
  if (draining_) answer_drain_if_all_safe();
}

// A worker that cannot be asked has nothing to say; one that has ended needs not.
void Supervisor::answer_drain_if_all_safe() {
  if (drain_answered_) return;
  const auto owes_an_answer = [this](int local_rank) {
    return group_.at(local_rank).listens && !group_.at(local_rank).safe;
  };
  const std::vector<int> running = group_.running();
  if (std::any_of(running.begin(), running.end(), owes_an_answer)) return;
  drain_answered_ = true;
  const std::vector<std::int64_t> steps = group_.steps();
  const std::int64_t step = steps.empty() ? -1 : *std::min_element(steps.begin(), steps.end());
  send(rendezvous::WorkersSafe{assignment_->round, step});
}

// ---- stopping ------------------------------------------------------------------------------------------

void Supervisor::hear(const rendezvous::StopWorkers& message, Instant now) {
  if (!round_is(message.round) || stop_asked_) return;
  stop_asked_ = true;
  stop_workers(SIGTERM, draining_ ? options_.graces.rescale : options_.graces.restart, now);
}

void Supervisor::hear(const rendezvous::JobEnded& message, Instant now) {
  if (outcome_) return;
  outcome_ = message.outcome;
  stop_workers(SIGTERM, options_.graces.stop, now);
}

void Supervisor::hear(const rendezvous::Refused& message, Instant now) {
  hear(rendezvous::JobEnded{outcome_of(OutcomeKind::rendezvous_failed, message.reason)}, now);
}

void Supervisor::on(const StopSignal& event, Instant now) {
  ++stop_signals_seen_;
  const Duration hurried =
      stop_signals_seen_ == 2 ? std::min(options_.graces.hurried, options_.graces.stop) : Duration::zero();
  if (stop_signals_seen_ > 1) {
    ladder_.begin(hurried, now);
    if (hurried > Duration::zero()) signal_running(event.signal_number, SignalTarget::main_process);
    climb_ladder(now);
    return;
  }
  // Once the job's end is known, a signal can only make it quicker.
  if (!outcome_) {
    stop_signal_ = event.signal_number;
    send(rendezvous::Leave{signal_name(event.signal_number) + " came from outside"});
  }
  const std::size_t running = group_.running().size();
  if (running == 0) return;
  say(signal_name(event.signal_number) + " came: passed on to " + std::to_string(running) +
      (running == 1 ? " worker, which has " : " workers, which have ") + human(options_.graces.stop) +
      " to leave; a second signal makes it " +
      human(std::min(options_.graces.hurried, options_.graces.stop)));
  // Also to those that had SIGTERM for another reason: they hear of the user's wish by its own name.
  ladder_.begin(options_.graces.stop, now);
  signal_running(event.signal_number, SignalTarget::main_process);
}

/// Whoever was signalled once is not signalled again: a second SIGTERM may break off its saving.
void Supervisor::stop_workers(int signal_number, Duration grace, Instant now) {
  if (group_.running().empty()) return;
  const bool first_time = !ladder_.begun();
  ladder_.begin(grace, now);
  if (first_time) signal_running(signal_number, SignalTarget::main_process);
}

void Supervisor::signal_running(int signal_number, SignalTarget target) {
  for (const int local_rank : group_.running()) {
    group_.at(local_rank).asked_to_stop = true;
    effects_.push_back(SignalWorker{local_rank, signal_number, target});
  }
}

void Supervisor::on(const Tick&, Instant now) { climb_ladder(now); }

void Supervisor::climb_ladder(Instant now) {
  const StopLadder::Step due = ladder_.tick(now);
  const std::vector<int> running = group_.running();
  if (running.empty()) return;
  if (due == StopLadder::Step::kill) {
    say(std::to_string(running.size()) + " of " + std::to_string(group_.size()) +
        " workers did not end within " + human(ladder_.grace()) + " and are killed, " +
        name_of(running.front()) + " first");
    signal_running(SIGKILL, SignalTarget::whole_group);
  }
  if (due == StopLadder::Step::give_up)
    for (const int local_rank : running) effects_.push_back(DescribeWorker{local_rank});
}

void Supervisor::on(const WorkerState& event, Instant) {
  group_.at(event.local_rank).abandoned = true;
  survivors_.push_back(name_of(event.local_rank) + " outlived SIGKILL: " + event.text);
  say(survivors_.back());
}

void Supervisor::on(const GroupSwept& event, Instant) {
  sweep_ = Sweep::done;
  for (const std::string& survivor : event.survivors) {
    survivors_.push_back(survivor);
    say(survivor);
  }
}

// ---- after the group -----------------------------------------------------------------------------------

void Supervisor::settle() {
  if (finished_) return;
  if (in_round()) {
    if (!group_.over()) return;
    if (sweep_ == Sweep::not_yet) {
      ladder_.reset();
      sweep_ = Sweep::asked;
      effects_.push_back(SweepGroup{options_.sweep_limit});
    }
    if (sweep_ == Sweep::asked) return;
  }
  decide_after_group();
}

void Supervisor::decide_after_group() {
  if (stop_signal_ != 0) {
    const bool by_scheduler = stop_signal_ == SIGTERM;
    finish(outcome_of(by_scheduler ? OutcomeKind::preempted : OutcomeKind::stopped,
                      "stopped by " + signal_name(stop_signal_) + " from outside"),
           stop_signal_);
  } else if (outcome_) {
    finish(*outcome_, 0);
  } else if (!survivors_.empty()) {
    // Its device and ports may still be held: no new round may start here.
    send(rendezvous::Leave{survivors_.front()});
    finish(outcome_of(OutcomeKind::failed, survivors_.front()), 0);
  } else if (stop_asked_) {
    rejoin();
  } else if (in_round() && !told_success_ && group_.all_succeeded() && !group_.any_saved()) {
    told_success_ = true;
    send(rendezvous::WorkersSucceeded{assignment_->round});
  } else if (in_round() && group_.all_succeeded() && group_.any_saved()) {
    answer_drain_if_all_safe();  // or say that they saved and left unasked
  }
}

void Supervisor::rejoin() {
  send(rendezvous::WorkersStopped{assignment_->round});
  assignment_.reset();
  group_ = WorkerGroup();
  stop_asked_ = false;
  waiting_reason_ = "the next round has not formed yet";
  open_store();
}

void Supervisor::finish(Outcome outcome, int stop_signal) {
  finished_ = true;
  effects_.push_back(Finish{std::move(outcome), stop_signal, !survivors_.empty()});
}

}  // namespace muster::agent
