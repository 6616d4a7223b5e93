// How the supervisor ends its workers: who is signalled, when, and by what.
#include <algorithm>
#include <csignal>

#include "agent/core/supervisor.hpp"

namespace muster::agent {

using rendezvous::Outcome;
using rendezvous::OutcomeKind;

namespace {

/// Of a grace, what is kept for those that were asked to save and did not: SIGTERM comes so long before SIGKILL.
constexpr Duration kMostKeptForSignal = std::chrono::seconds(5);

Duration kept_for_signal(Duration grace) { return std::min(grace / 4, kMostKeptForSignal); }

/// A terminal sends these two to all processes of a job, and a shell that waits for its program does nothing about
/// them by itself. Everything else is for the main process first: its helpers are needed for saving.
SignalTarget target_of(int signal_number) {
  return signal_number == SIGINT || signal_number == SIGQUIT ? SignalTarget::whole_group
                                                             : SignalTarget::main_process;
}

std::string workers_text(std::size_t number) {
  return std::to_string(number) + (number == 1 ? " worker" : " workers");
}

struct StopWords {
  std::string stopped_by;     // "stopped by ...", for whoever started this node
  std::string why_it_leaves;  // for the others
};

StopWords words_of(const StopSignal& event, bool rehearsed) {
  const std::string signal = signal_name(event.signal_number);
  if (event.parent_ended)
    return {signal + ", since the process that started muster has ended (--die-with-parent)",
            "the process that started its launcher has ended"};
  if (rehearsed)
    return {signal + ", rehearsed by musterctl chaos", signal + ", rehearsed by musterctl chaos"};
  return {signal + " from outside", signal + " came from outside"};
}

}  // namespace

void Supervisor::hear(const rendezvous::StopWorkers& message, Instant now) {
  if (!round_is(message.round)) return;
  restart_count_ = std::max(restart_count_, message.restart_count);
  if (message.cause_is_known && why_ended_.empty()) why_ended_ = message.reason;
  if (stop_asked_) return;
  stop_asked_ = true;
  phases_.enter(RestartPhase::stop, now);
  stop_workers(SIGTERM, draining_ ? options_.graces.rescale : options_.graces.restart, now);
}

void Supervisor::hear(const rendezvous::JobEnded& message, Instant now) {
  if (outcome_) return;
  outcome_ = message.outcome;
  stop_workers(SIGTERM, options_.graces.stop, now);
}

void Supervisor::hear(const rendezvous::Refused& message, Instant now) {
  hear(rendezvous::JobEnded{{OutcomeKind::rendezvous_failed, message.reason, {}, {}, 0}}, now);
}

// ---- signals from outside --------------------------------------------------------------------------------

// `timeout`, and some shells and batch systems, signal a process and then its whole group: nobody means a second signal
// by that, and nobody presses Ctrl-C twice in a tenth of a second.
bool Supervisor::is_echo(const StopSignal& event, Instant now) {
  constexpr auto echo = std::chrono::milliseconds(100);
  const bool known = stop_signals_seen_ > 0 && event.signal_number == last_stop_signal_.signal_number &&
                     now - last_stop_signal_at_ < echo;
  last_stop_signal_ = event;
  last_stop_signal_at_ = now;
  return known;
}

void Supervisor::on(const StopSignal& event, Instant now) {
  if (is_echo(event, now)) return;
  ++stop_signals_seen_;
  if (stop_signals_seen_ > 1) return hurry(event.signal_number, now);
  // Once the job's end is known, a signal can only make it quicker. But who is stopped while another node's leaving ends
  // the job was stopped as well: of a Ctrl-C on all nodes one is always heard of before the others' own.
  const bool ends_since_another_leaves =
      outcome_ && outcome_->kind == OutcomeKind::preempted && !group_.running().empty();
  if (!outcome_ || ends_since_another_leaves) {
    stop_signal_ = event.signal_number;
    const StopWords words = words_of(event, rehearsed_signal_ == event.signal_number);
    stopped_by_ = words.stopped_by;
    if (!outcome_) send(rendezvous::Leave{words.why_it_leaves, event.signal_number});
  }
  if (group_.running().empty()) return;
  // Whoever stops the job gives all of the grace from now on, also to workers that were told to leave for another reason.
  if (outcome_)
    ladder_.begin(options_.graces.stop, now);
  else
    ladder_.begin_anew(options_.graces.stop, now);
  const std::size_t savers = event.signal_number == SIGTERM ? ask_listeners_to_save(now) : 0;
  say(stop_sentence(event, savers, now));
  for (const int local_rank : group_.running()) {
    const GroupMember& member = group_.at(local_rank);
    // Also those that had SIGTERM for another reason hear of the user's wish by its own name.
    if (savers > 0 && member.asked_to_save && !member.signalled) continue;
    if (!(member.signalled && event.signal_number == SIGTERM))
      signal(local_rank, event.signal_number, target_of(event.signal_number));
  }
}

std::string Supervisor::stop_sentence(const StopSignal& event, std::size_t savers, Instant now) const {
  const std::size_t others = group_.running().size() - savers;
  std::string text = signal_name(event.signal_number) + " came";
  if (event.parent_ended) text += ", since the process that started muster has ended";
  text += ": ";
  if (savers > 0) text += workers_text(savers) + " asked to save" + (others > 0 ? ", " : "");
  if (others > 0) text += "passed on to " + workers_text(others);
  if (ladder_.killed()) return text + "; they are being killed already";
  const Duration left = ladder_.left(now);
  text += "; " + human(left) + " to leave";
  if (hurried_grace() < left) text += ", a second signal makes it " + human(hurried_grace());
  return text;
}

/// All ranks of the job that listen stop after the same step as soon as one of them is asked, so none of them may be
/// signalled before it has saved.
std::size_t Supervisor::ask_listeners_to_save(Instant now) {
  const Duration left = ladder_.left(now);
  const Duration kept = kept_for_signal(left);
  std::size_t savers = 0;
  for (const int local_rank : group_.running()) {
    GroupMember& member = group_.at(local_rank);
    if (!member.listens || member.signalled) continue;
    ask_to_save(local_rank, left - kept);
    member.asked_to_stop = true;
    ++savers;
  }
  if (savers > 0) savers_signal_at_ = now + left - kept;
  return savers;
}

Duration Supervisor::hurried_grace() const { return std::min(options_.graces.hurried, options_.graces.stop); }

Duration Supervisor::stop_grace() const {
  if (stop_signals_seen_ < 2) return options_.graces.stop;
  return stop_signals_seen_ == 2 ? hurried_grace() : Duration::zero();
}

void Supervisor::hurry(int signal_number, Instant now) {
  const Duration hurried = stop_grace();
  ladder_.begin(hurried, now);
  savers_signal_at_.reset();
  if (hurried > Duration::zero()) signal_running(signal_number, target_of(signal_number));
  climb_ladder(now);
}

void Supervisor::on(const WarningSignal& event, Instant) {
  if (!group_.running().empty()) return effects_.push_back(PassOnSignal{event.signal_number});
  say(signal_name(event.signal_number) + " came: no worker runs that it could be passed on to");
}

void Supervisor::on(const SignalPassedOn& event, Instant) {
  std::string text = signal_name(event.signal_number) + " came: ";
  if (event.told > 0) text += "passed on to " + workers_text(static_cast<std::size_t>(event.told));
  if (event.spared > 0)
    text += (event.told > 0 ? ", not to " : "not passed on to ") +
            workers_text(static_cast<std::size_t>(event.spared)) +
            " without a handler for it, whom it would kill";
  say(text + "; the job goes on");
}

// ---- faults on purpose -----------------------------------------------------------------------------------

void Supervisor::hear(const rendezvous::Inject& message, Instant) {
  const std::string what = "musterctl chaos: " + signal_name(message.signal_number) + " to ";
  if (!message.rank) {
    say(what + "this launcher");
    rehearsed_signal_ = message.signal_number;
    return effects_.push_back(InjectFault{std::nullopt, message.signal_number});
  }
  const int local_rank = in_round() ? *message.rank - assignment_->first_rank : -1;
  const std::string whom = "rank " + std::to_string(*message.rank);
  if (!has_process(local_rank))
    return say(what + whom + ": it has no process here any more, so nothing happens");
  say(what + whom + " (pid " + std::to_string(group_.at(local_rank).pid) + ")");
  group_.at(local_rank).rehearsed.push_back(message.signal_number);
  effects_.push_back(InjectFault{local_rank, message.signal_number});
}

bool Supervisor::has_process(int local_rank) const {
  if (local_rank < 0 || !is_member(local_rank)) return false;
  const GroupMember& member = group_.at(local_rank);
  return member.state == GroupMember::State::running && !member.main_ended && !member.abandoned;
}

// ---- the ladder ------------------------------------------------------------------------------------------

/// Whoever was signalled once is not signalled again: a second SIGTERM may break off its saving. Nor is the time that a
/// signal from outside gave made shorter by what the rendezvous makes of it. Who said "safe" is leaving by itself, and
/// is signalled only when it takes long.
void Supervisor::stop_workers(int signal_number, Duration grace, Instant now) {
  const std::vector<int> running = group_.running();
  if (running.empty()) return;
  ladder_.begin(stop_signal_ != 0 ? options_.graces.stop : grace, now);
  const Instant kill_at = ladder_.wake_at().value_or(now);
  savers_signal_at_.reset();
  for (const int local_rank : running) {
    GroupMember& member = group_.at(local_rank);
    if (member.signalled) continue;
    member.asked_to_stop = true;
    if (member.safe)
      savers_signal_at_ = kill_at - kept_for_signal(ladder_.grace());
    else
      signal(local_rank, signal_number, SignalTarget::main_process);
  }
}

void Supervisor::signal_savers() {
  if (!savers_signal_at_) return;
  savers_signal_at_.reset();
  for (const int local_rank : group_.running())
    if (!group_.at(local_rank).signalled) signal(local_rank, SIGTERM, SignalTarget::main_process);
}

void Supervisor::signal_running(int signal_number, SignalTarget target) {
  for (const int local_rank : group_.running()) signal(local_rank, signal_number, target);
}

void Supervisor::signal(int local_rank, int signal_number, SignalTarget target) {
  group_.at(local_rank).asked_to_stop = true;
  group_.at(local_rank).signalled = true;
  group_.at(local_rank).signals.push_back(signal_number);
  effects_.push_back(SignalWorker{local_rank, signal_number, target});
}

std::optional<Instant> Supervisor::wake_at() const {
  if (finished_) return std::nullopt;
  const auto ladder = ladder_.wake_at();
  if (!savers_signal_at_ || group_.running().empty()) return ladder;
  return ladder ? std::min(*ladder, *savers_signal_at_) : savers_signal_at_;
}

void Supervisor::on(const Tick&, Instant now) {
  if (savers_signal_at_ && now >= *savers_signal_at_) signal_savers();
  climb_ladder(now);
}

void Supervisor::climb_ladder(Instant now) {
  const StopLadder::Step due = ladder_.tick(now);
  const std::vector<int> running = group_.running();
  if (running.empty()) return;
  if (due == StopLadder::Step::kill) {
    used_grace_ = ladder_.grace();
    say_who_is_killed(running);
    signal_running(SIGKILL, SignalTarget::whole_group);
  }
  if (due == StopLadder::Step::give_up)
    for (const int local_rank : running) effects_.push_back(DescribeWorker{local_rank});
}

/// Whose main process has ended already is told of by what is left of it: see RestKilled.
void Supervisor::say_who_is_killed(std::vector<int> running) {
  std::erase_if(running, [this](int local_rank) { return group_.at(local_rank).main_ended; });
  if (running.empty()) return;
  say(std::to_string(running.size()) + " of " + std::to_string(group_.size()) + " workers " + grace_passed() +
      ", " + name_of(running.front()) + " first");
}

/// "did not end within 3 s and are killed".
std::string Supervisor::grace_passed() const {
  const bool at_once = ladder_.grace() == Duration::zero();
  return at_once ? "are killed at once" : "did not end within " + human(ladder_.grace()) + " and are killed";
}

void Supervisor::on(const MainEnded& event, Instant) { group_.at(event.local_rank).main_ended = true; }

void Supervisor::on(const RestKilled& event, Instant) {
  const bool at_once = ladder_.grace() == Duration::zero();
  say(name_of(event.local_rank) + " has ended, but what it left behind, " + event.who +
      (at_once ? ", is killed at once"
               : ", did not end within " + human(ladder_.grace()) + " and is killed"));
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

}  // namespace muster::agent
