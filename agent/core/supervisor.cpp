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
  settle(now);
  return std::exchange(effects_, {});
}

// ---- joining -------------------------------------------------------------------------------------------

void Supervisor::on(const Begin&, Instant now) {
  phases_.enter(RestartPhase::rendezvous, now);
  open_store();
}

void Supervisor::open_store() { effects_.push_back(OpenStore{++store_number_}); }

void Supervisor::on(const StoreOpened& event, Instant) {
  if (finished_ || in_round()) return;
  rendezvous::NodeOffer offer = options_.offer;
  offer.store_port = event.port;
  send(rendezvous::Join{std::move(offer), last_round_, restart_count_, why_ended_});
}

void Supervisor::on(const StoreFailed& event, Instant) {
  if (last_round_ > 0) send(rendezvous::Leave{event.why});
  outcome_ = outcome_of(OutcomeKind::failed, event.why);
  outcome_->first_failure = last_failure_;
  outcome_->max_restarts = max_restarts_;
}

void Supervisor::on(const FromDaemon& event, Instant now) {
  std::visit([&](const auto& message) { hear(message, now); }, event.message);
}

void Supervisor::hear(const rendezvous::Waiting& message, Instant) {
  if (waiting_reason_ == message.reason) return;
  waiting_reason_ = message.reason;
  if (!in_round()) say(message.reason);
}

void Supervisor::hear(const rendezvous::Assignment& message, Instant now) {
  if (in_round() || message.round <= last_round_) return;
  phases_.enter(RestartPhase::spawn, now);
  assignment_ = message;
  last_failure_.reset();
  announced_ = false;
  last_round_ = message.round;
  restart_count_ = message.restart_count;
  why_ended_.clear();
  max_restarts_ = message.max_restarts;
  group_ = WorkerGroup(options_.offer.local_workers, options_.success_needs);
  ladder_.reset();
  used_grace_.reset();
  sweep_ = Sweep::not_yet;
  draining_ = drain_answered_ = told_success_ = stop_asked_ = false;
  progress_told_at_.reset();  // newcomers wait for a round's first step
  savers_signal_at_.reset();

  // A new round means that no worker of the old one is alive on any node: its store has served its time.
  if (round_store_number_ > 0) effects_.push_back(CloseStore{round_store_number_});
  round_store_number_ = store_number_;
  if (message.group_rank != 0) {
    effects_.push_back(CloseStore{store_number_});
    round_store_number_ = 0;
  }
  effects_.push_back(StartWorkers{message});
}

// ---- running -------------------------------------------------------------------------------------------

void Supervisor::on(const WorkerStarted& event, Instant now) {
  group_.started(event.local_rank, event.pid, event.at);
  if (event.local_rank == group_.size() - 1) announce_round(now);
}

/// All were started, or one could not be: nothing that the workers write has been read yet.
void Supervisor::announce_round(Instant now) {
  if (std::exchange(announced_, true)) return;
  const rendezvous::Assignment& a = *assignment_;
  rounds_.push_back({a.round, a.group_world_size, a.world_size, a.reason, phases_.finish(now)});
  say(round_sentence(rounds_.back().phases));
  if (rounds_.size() > kMaxRoundRecords) rounds_.pop_front();
}

void Supervisor::on(const WorkerEnded& event, Instant now) {
  announce_round(now);
  const bool was_healthy = !group_.first_failure();
  group_.at(event.local_rank).ended_unasked = event.unasked;
  group_.ended(event.local_rank, event.cause, event.unix_time_ms, now);
  if (was_healthy && group_.first_failure()) {
    phases_.enter(RestartPhase::detect, now);
    const std::size_t others = group_.running().size();
    std::string sentence = name_of(event.local_rank) + " " + group_.at(event.local_rank).cause.sentence();
    if (others > 0)
      sentence += "; stopping the other " +
                  (others == 1 ? std::string("worker") : std::to_string(others) + " workers") + " here";
    say(std::move(sentence));
    stop_workers(SIGTERM, options_.graces.restart, now);
  }
  const GroupMember& member = group_.at(event.local_rank);
  if (member.asked_to_save && !member.exited_well()) signal_savers();
  if (draining_) answer_drain_if_all_safe();
}

void Supervisor::on(const WorkerOutput& event, Instant now) {
  group_.at(event.local_rank).output_taken = true;
  if (group_.first_failure() == event.local_rank) report_failure(event, now);
}

void Supervisor::report_failure(const WorkerOutput& output, Instant now) {
  if (stop_signal_ != 0 || outcome_) return;
  phases_.enter(RestartPhase::tell, now);
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
  last_failure_ = failure;
  const Duration age = member.pid > 0 ? now - (member.started_at + member.lived) : Duration::zero();
  send(rendezvous::WorkerFailed{assignment_->round, std::move(failure), std::max(age, Duration::zero())});
}

void Supervisor::on(const WorkerListens& event, Instant) {
  if (!is_member(event.local_rank)) return;
  group_.at(event.local_rank).listens = true;
  if (draining_) ask_to_save(event.local_rank, drain_grace_);
}

void Supervisor::on(const WorkerDeaf& event, Instant) {
  if (!is_member(event.local_rank)) return;
  group_.at(event.local_rank).listens = false;
  if (draining_) answer_drain_if_all_safe();
}

void Supervisor::on(const WorkerProgress& event, Instant now) {
  if (!is_member(event.local_rank)) return;
  group_.at(event.local_rank).step = event.step;
  group_.at(event.local_rank).progress_at = now;
  if (progress_told_at_ && now - *progress_told_at_ < options_.progress_interval) return;
  progress_told_at_ = now;
  send(rendezvous::Progress{assignment_->round, event.step});
}

// ---- draining ------------------------------------------------------------------------------------------

void Supervisor::hear(const rendezvous::Drain& message, Instant now) {
  if (!round_is(message.round) || draining_) return;
  phases_.enter(RestartPhase::drain, now);
  draining_ = true;
  drain_grace_ = message.grace;
  say("round " + std::to_string(message.round) + " ends: " + message.reason);
  for (const int local_rank : group_.running())
    if (group_.at(local_rank).listens) ask_to_save(local_rank, message.grace);
  answer_drain_if_all_safe();
}

void Supervisor::ask_to_save(int local_rank, Duration grace) {
  GroupMember& member = group_.at(local_rank);
  if (member.asked_to_save) return;
  member.asked_to_save = true;
  effects_.push_back(AskToSave{local_rank, grace});
}

void Supervisor::on(const WorkerSafe& event, Instant) {
  // The others may have heard of the drain before this node did, and all ranks act after the same step.
  if (!is_member(event.local_rank)) return;
  group_.at(event.local_rank).safe = true;
  group_.at(event.local_rank).step = event.step;
  if (draining_) answer_drain_if_all_safe();
}

void Supervisor::on(const WorkerDone& event, Instant) {
  if (is_member(event.local_rank)) group_.at(event.local_rank).done = true;
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

// ---- after the group -----------------------------------------------------------------------------------

void Supervisor::settle(Instant now) {
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
  decide_after_group(now);
}

void Supervisor::decide_after_group(Instant now) {
  if (stop_signal_ != 0) {
    const bool by_scheduler = stop_signal_ == SIGTERM;
    finish(
        outcome_of(by_scheduler ? OutcomeKind::preempted : OutcomeKind::stopped, "stopped by " + stopped_by_),
        stop_signal_);
  } else if (outcome_) {
    finish(*outcome_, 0);
  } else if (!survivors_.empty()) {
    // Its device and ports may still be held: no new round may start here.
    send(rendezvous::Leave{survivors_.front()});
    finish(outcome_of(OutcomeKind::failed, survivors_.front()), 0);
  } else if (stop_asked_) {
    rejoin(now);
  } else if (in_round() && !told_success_ && group_.all_succeeded() && !group_.any_saved()) {
    told_success_ = true;
    send(rendezvous::WorkersSucceeded{assignment_->round});
  } else if (in_round() && group_.all_succeeded() && group_.any_saved()) {
    answer_drain_if_all_safe();  // or say that they saved and left unasked
  }
}

void Supervisor::rejoin(Instant now) {
  phases_.enter(RestartPhase::rendezvous, now);
  send(rendezvous::WorkersStopped{assignment_->round});
  assignment_.reset();
  group_ = WorkerGroup();
  stop_asked_ = false;
  waiting_reason_ = "the next round has not formed yet";
  open_store();
}

void Supervisor::finish(Outcome outcome, int stop_signal) {
  finished_ = true;
  effects_.push_back(Finish{std::move(outcome), stop_signal, std::move(survivors_),
                            used_grace_.value_or(stop_grace()), stop_signals_seen_});
}

}  // namespace muster::agent
