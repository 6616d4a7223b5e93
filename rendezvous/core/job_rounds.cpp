// How rounds are formed and come to their end.
#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "rendezvous/core/job.hpp"
#include "rendezvous/core/sentences.hpp"

namespace muster::rendezvous {
namespace {

/// An agent that lives tries within 2 s to reach a daemon that is back (RemoteLinkOptions::max_retry), and is slow at worst.
constexpr Duration kNextTry = std::chrono::seconds(5);

}  // namespace

// ---- time and membership -------------------------------------------------------------------------------

void Job::advance() {
  if (over()) return;
  for (const NodeId& node : members_.overdue(now_)) {
    const Member* member = members_.find(node);
    if (member && !over()) lose(node, member->away_reason);
  }
  while (!over() && advance_once()) {
  }
  if (!over()) news();
}

/// True if there may be more to do at this same moment.
bool Job::advance_once() {
  switch (phase_) {
    case Phase::gathering:
      return advance_gathering();
    case Phase::running:
      return advance_running();
    case Phase::draining:
      return advance_draining();
    case Phase::stopping:
      return advance_stopping();
    case Phase::over:
      break;
  }
  return false;
}

bool Job::advance_gathering() {
  const Roster who = roster();
  note_roster(gathering_, who, policy_, now_);
  // Not the damped window: it spares work that goes on, and here everybody waits.
  switch (decide(gathering_, who, policy_, policy_.settle_window, now_)) {
    case GatherVerdict::wait:
      return false;
    case GatherVerdict::form:
      form();
      return true;
    case GatherVerdict::give_up:
      break;
  }
  end(OutcomeKind::rendezvous_failed,
      fmt::format(
          "the join deadline of {} has passed with {} of at least {} here{}{}", human(policy_.join_deadline),
          count_of(who.here, "node"), policy_.min_nodes,
          who.here > 0 ? ": " + names_of(members_.first_available(max_names_in_sentence), who.here) : "",
          ending_.cause.empty() ? "" : "; why a new round was needed: " + ending_.reason()));
  return false;
}

bool Job::advance_running() {
  if (round_->all_succeeded()) {
    end(OutcomeKind::succeeded,
        round_->world_size() == 1 ? "the worker finished"
                                  : fmt::format("all {} finished", count_of(round_->world_size(), "worker")));
    return false;
  }
  if (unclaimed_until_ && round_->unclaimed() == 0) unclaimed_until_.reset();
  if (unclaimed_until_ && now_ >= *unclaimed_until_) {
    give_up_unclaimed();
    return true;
  }
  if (policy_.exit_barrier_limit && first_success_ && now_ >= *first_success_ + *policy_.exit_barrier_limit)
    release_finished();
  if (round_->size() > policy_.max_nodes && !round_->any_succeeded()) {
    drain(fmt::format("an operator scaled the job to {}", nodes_of(policy_.min_nodes, policy_.max_nodes)));
    return true;
  }
  const int joiners = std::min(usable_spares(), policy_.max_nodes - round_->size());
  if (joiners <= 0 || growth_at(now_) > now_) return false;
  // Those who waited already when it began have come while it was young, too.
  if (!round_->any_step())
    starts_are_spared_ = growth_.first.value_or(running_since_) < running_since_ + policy_.first_step_timeout;
  drain(fmt::format("{} {} joined ({} of {})", joiners == 1 ? "node" : "nodes",
                    names_of(usable_names(), joiners), round_->size() + joiners,
                    range_of(policy_.min_nodes, policy_.max_nodes)));
  return true;
}

std::vector<NodeId> Job::usable_names() const {
  const std::vector<NodeId> cooling = cooldown_.cooling(now_);
  auto names = members_.first_available(max_names_in_sentence + static_cast<int>(cooling.size()));
  std::erase_if(names,
                [&](const NodeId& node) { return std::binary_search(cooling.begin(), cooling.end(), node); });
  return names;
}

bool Job::advance_draining() {
  if (round_->all_succeeded()) {
    phase_ = Phase::running;  // there is nothing left to drain
    return true;
  }
  if (!round_->all_safe() && now_ < ending_.deadline) return false;
  finish_drain();
  return true;
}

bool Job::advance_stopping() {
  if (unclaimed_until_ && now_ >= *unclaimed_until_) unclaimed_until_.reset();
  if (round_->all_stopped() && (round_->unclaimed() == 0 || !unclaimed_until_)) {
    if (ending_.suspect && !judge_suspect()) return false;
    gather();
    return true;
  }
  if (now_ < ending_.deadline) return false;
  ending_.deadline = now_ + policy_.stop_deadline;
  give_up_laggards();
  return !over();
}

std::optional<Instant> Job::gathering_wake() const {
  Instant at = ask_again_at(gathering_, roster(), policy_, policy_.settle_window);
  for (const NodeId& node : cooldown_.cooling(now_))
    if (members_.is_available(node)) at = std::min(at, *cooldown_.until(node, now_));
  return at;
}

std::optional<Instant> Job::running_wake() const {
  std::optional<Instant> earliest = unclaimed_until_;
  const auto also = [&](Instant at) {
    if (!earliest || at < *earliest) earliest = at;
  };
  if (policy_.exit_barrier_limit && first_success_) also(*first_success_ + *policy_.exit_barrier_limit);
  if (round_->size() >= policy_.max_nodes || members_.available() == 0) return earliest;
  if (usable_spares() > 0) also(growth_at(now_));
  for (const NodeId& node : cooldown_.cooling(now_))
    if (members_.is_available(node)) also(*cooldown_.until(node, now_));
  return earliest;
}

/// Nodes that cool down are passed over, unless min_nodes cannot be reached without them.
Roster Job::roster() const {
  return {std::max(usable_spares(), std::min(members_.available(), policy_.min_nodes)), members_.coming(),
          members_.rejoining()};
}

/// Those who could sit in a round and do not cool down. A round that finishes takes in nobody, and neither
/// does one of which a node is away: it could not be asked to save.
int Job::usable_spares() const {
  if (round_ && (round_->any_succeeded() || round_->unclaimed() > 0 || members_.seated_away() > 0)) return 0;
  int usable = members_.available();
  if (usable == 0) return 0;
  for (const NodeId& node : cooldown_.cooling(now_)) usable -= members_.is_available(node);
  return usable;
}

/// The first newcomer ends a round however young it is: whether its workers ever say that they made a step is not
/// known yet. Once a round has made one, or was ended before it could, the start of the next is not wasted again.
std::optional<Instant> Job::spared_until(Instant now) const {
  const Instant end = running_since_ + policy_.first_step_timeout;
  if (!starts_are_spared_ || round_->any_step() || now >= end) return std::nullopt;
  return end;
}

Instant Job::growth_at(Instant now) const {
  const Duration window = changes_.settle_window(now);
  const Instant settled = growth_.at(window, policy_.settle_limit).value_or(now);
  const Instant allowed = std::max(settled, changes_.growth_allowed_at(now));
  return std::max(allowed, spared_until(now).value_or(allowed));
}

// ---- forming -------------------------------------------------------------------------------------------

void Job::form() {
  std::vector<Candidate> usable;
  std::vector<Candidate> cooling;
  for (Candidate& candidate : members_.candidates())
    (cooldown_.until(candidate.offer.node, now_) ? cooling : usable).push_back(std::move(candidate));
  for (Candidate& candidate : cooling)
    if (static_cast<int>(usable.size()) < policy_.min_nodes) usable.push_back(std::move(candidate));
  const std::vector<PlannedSeat> plan =
      plan_ranks(choose_nodes(std::move(usable), policy_.max_nodes, places_), places_);

  Round::State header;
  header.number = last_round_ = std::max(last_round_, heard_round_) + 1;
  header.restart_count = ledger_.restarts();
  header.max_restarts = policy_.max_restarts;
  header.reason = forming_reason(static_cast<int>(plan.size()));
  header.forming_took = now_ - gathering_.since;
  round_ = Round(std::move(header), plan);

  enter(Phase::running);
  running_since_ = now_;
  gathering_ = {};
  growth_.reset();
  ending_ = {};
  first_success_.reset();
  unclaimed_until_.reset();
  std::vector<NodeId> seated;
  for (const PlannedSeat& planned : plan) {
    const NodeId& node = planned.offer.node;
    members_.set_stand(node, Stand::seated);
    tell(node, round_->assignment(node));
    seated.push_back(node);
  }
  places_.remember(last_round_, seated);
}

void Job::gather() {
  const Settle changes = gathering_.settle;
  gathering_ = {};
  gathering_.since = now_;
  gathering_.reforming = true;
  gathering_.settle = changes;
  round_.reset();
  first_success_.reset();
  unclaimed_until_.reset();
  enter(Phase::gathering);
}

// ---- ending a round ------------------------------------------------------------------------------------

void Job::note_change() {
  changes_.record(now_);
  if (now_ - running_since_ >= policy_.startup_window) ledger_.round_worked();
}

void Job::drain(std::string reason, std::optional<Outcome> outcome) {
  if (!outcome) note_change();
  ending_ = {};
  ending_.cause = std::move(reason);
  ending_.outcome = std::move(outcome);
  ending_.deadline = now_ + policy_.drain_grace;
  enter(Phase::draining);
  for (const Seat& seat : round_->state().seats)
    if (round_->waits_for_safe(seat))
      tell(seat.node, Drain{round_->number(), policy_.drain_grace, ending_.reason()});
}

void Job::finish_drain() {
  if (ending_.outcome) return end(*ending_.outcome);
  if (staying() == 0) return end(OutcomeKind::preempted, ending_.reason() + ", and no node is left");
  if (staying() >= policy_.min_nodes) return stop_round(ending_.reason());
  const auto& seats = round_->state().seats;
  // Its connection may have ended before the others were safe: then it is in the book no more.
  const auto leaver = std::find_if(seats.begin(), seats.end(), [&](const Seat& seat) {
    const Member* member = members_.find(seat.node);
    return member ? !member->leaving.empty() : seat.gone && !seat.succeeded;
  });
  if (leaver == seats.end()) return stop_round(ending_.reason());
  missing(leaver->node, "left", ending_.reason());
}

void Job::stop_round(std::string reason, Cost cost, Cause cause) {
  ending_ = {};
  ending_.cause = std::move(reason);
  ending_.cause_is_known = cause == Cause::known;
  ending_.charged = cost == Cost::restart;
  ending_.deadline = now_ + policy_.stop_deadline;
  // This round is over: whoever was not heard of since the daemon came back is waited for no longer than anybody else
  // whom the network has cut off; but long enough to tell what it knows of the cause.
  if (unclaimed_until_) {
    const Duration patience =
        cause == Cause::known ? policy_.broken_grace : std::max(policy_.broken_grace, kNextTry);
    unclaimed_until_ = std::min(*unclaimed_until_, now_ + patience);
  }
  enter(Phase::stopping);
  for (const Seat& seat : round_->state().seats)
    if (round_->waits_for_stop(seat)) tell(seat.node, stop_order());
}

StopWorkers Job::stop_order() const {
  return {round_->number(), ending_.reason(), ledger_.restarts(), ending_.cause_is_known};
}

/// Whoever is connected and still has not stopped is taken for lost; those who are away have their own time.
void Job::give_up_laggards() {
  for (const NodeId& node : round_->unstopped(round_->size())) {
    const Member* member = members_.find(node);
    if (!member || !member->connected()) continue;
    lose(node, fmt::format("it did not stop its workers within {}", human(policy_.stop_deadline)));
    if (!over()) continue;
    tell(node, JobEnded{outcome_});
    return;
  }
}

void Job::give_up_unclaimed() {
  const int nodes = round_->unclaimed();
  const auto named = round_->expected(max_names_in_sentence);
  const std::string who =
      static_cast<int>(named.size()) == nodes ? names_of(named, nodes) : count_of(nodes, "node");
  round_->give_up_unclaimed();
  unclaimed_until_.reset();
  const std::string sentence = who + " did not come back after the daemon had";
  if (members_.staying() < policy_.min_nodes) return missing(who, "lost", sentence);
  note_change();
  stop_round(sentence);
}

/// The others take longer than the exit barrier allows: whoever has finished may go, but for the store's
/// host.
void Job::release_finished() {
  first_success_.reset();
  const std::vector<Seat> seats = round_->state().seats;
  for (std::size_t i = 1; i < seats.size(); ++i) {
    const NodeId& node = seats[i].node;
    if (!seats[i].succeeded || seats[i].gone || !members_.find(node)) continue;
    tell(node, JobEnded{outcome_of(OutcomeKind::succeeded,
                                   fmt::format("the workers of {} finished; others still ran {} later", node,
                                               human(*policy_.exit_barrier_limit)))});
    round_->mark_gone(node);
    members_.remove(node);
  }
}

// ---- nodes that go -------------------------------------------------------------------------------------

void Job::lose(NodeId node, std::string why) {
  const Member member = *members_.find(node);
  const int staying_before = staying();
  const bool finished = round_ && round_->seat(node) && round_->seat(node)->succeeded;
  if (round_ && member.stand == Stand::seated) round_->mark_gone(node);
  members_.remove(node);
  newcomers_.erase(node);
  gathering_.settle.note(now_);
  const bool left = !member.leaving.empty();
  if (!left && member.stand != Stand::ready) cooldown_.strike(node, now_);
  if (phase_ == Phase::running && (member.stand != Stand::seated || finished)) return;
  gone(node, left ? "left" : "lost",
       left ? fmt::format("{} left ({})", node, member.leaving) : fmt::format("{} was lost ({})", node, why),
       staying_before);
}

void Job::leave(const NodeId& node, const std::string& why, bool drained, int signal_number) {
  const Member& member = *members_.find(node);
  if (!member.leaving.empty()) return;
  leave_signal_ = signal_number;
  const Stand stand = member.stand;
  const int staying_before = staying();
  members_.set_leaving(node, why, drained);
  const std::string sentence = fmt::format("{} leaves ({})", node, members_.find(node)->leaving);
  if (stand == Stand::seated && phase_ == Phase::running) {
    if (!round_->seat(node)->succeeded) return drain(sentence);
    round_->mark_gone(node);
    return dismiss(node);
  }
  const bool may_be_cause = phase_ == Phase::stopping && !ending_.cause_is_known && !ending_.suspect;
  if (may_be_cause && stand == Stand::seated) name_cause(sentence, Cost::nothing);
  if (phase_ == Phase::draining) return;
  // A drained node that still stops its workers is dismissed when it asks for the next round.
  if (stand == Stand::ready || (stand == Stand::between && !drained)) dismiss(node);
  if (phase_ == Phase::running) return;  // the round goes on without it: it had no part in it
  also(sentence);
  gone(node, "left", sentence, staying_before);
}

/// Takes a node that goes out of the book; one that an operator drained is told that its part is over.
void Job::dismiss(NodeId node) {
  const Member& member = *members_.find(node);
  if (member.drained)
    tell(node,
         JobEnded{outcome_of(OutcomeKind::stopped, node + " was drained by an operator; the job goes on")});
  gathering_.settle.note(now_);
  newcomers_.erase(node);
  members_.remove(node);
}

/// Who may sit in the next round; those who have not spoken since the daemon came back are hoped for.
int Job::staying() const { return members_.staying() + (round_ ? round_->unclaimed() : 0); }

/// A member is lost or has left: what that means for the job.
void Job::gone(const NodeId& node, const char* how, const std::string& sentence, int staying_before) {
  const int staying = this->staying();
  if (staying == 0 && std::string_view(how) == "left" && phase_ != Phase::draining)
    return end(OutcomeKind::preempted, sentence + ", and no node is left");
  if (staying >= policy_.min_nodes) {
    if (phase_ != Phase::running) {
      if (std::string_view(how) == "lost") also(sentence);
      return;
    }
    note_change();
    return stop_round(sentence);
  }
  // What failed came before.
  if (phase_ == Phase::stopping && ending_.suspect && !judge_suspect()) return;
  // Below the minimum: charged when it is crossed, once for each round, and not before the job has ever
  // worked.
  const bool crossed = staying_before >= policy_.min_nodes;
  if (phase_ == Phase::running || (crossed && last_round_ > 0 && !ending_.charged))
    missing(node, how, sentence);
  else if (crossed && last_round_ > 0)
    also(sentence);
}

/// The round ends already, and this happens, too: who reads why has to find both. The first ones, so that a whole rack
/// does not make a page.
void Job::also(const std::string& sentence) {
  constexpr std::size_t most = 3;
  auto& then = ending_.then;
  const bool told = ending_.cause.find(sentence) != std::string::npos ||
                    std::find(then.begin(), then.end(), sentence) != then.end();
  if (!ending_.cause.empty() && !told && then.size() < most) then.push_back(sentence);
}

/// The job cannot go on without a replacement: while restarts are left it waits for one.
void Job::missing(const NodeId& node, const char* how, const std::string& sentence) {
  const Verdict verdict = ledger_.judge_missing_node(node, how, now_);
  if (!verdict.restart) {
    const bool left = std::string_view(how) == "left";
    return end(left ? OutcomeKind::preempted : OutcomeKind::node_lost,
               fmt::format("{}: {} of at least {} left, and {} of {} restarts used", sentence,
                           count_of(members_.staying(), "node"), policy_.min_nodes, ledger_.restarts(),
                           policy_.max_restarts));
  }
  const std::string reason = verdict.reason + " after " + sentence;
  if (phase_ == Phase::running || phase_ == Phase::draining) return stop_round(reason, Cost::restart);
  ending_.then.clear();
  name_cause(reason, Cost::restart);
}

// ---- the end -------------------------------------------------------------------------------------------

Outcome Job::outcome_of(OutcomeKind kind, std::string reason) const {
  return {kind,
          std::move(reason),
          std::nullopt,
          ledger_.lines(),
          policy_.max_restarts,
          kind == OutcomeKind::preempted ? leave_signal_ : 0};
}

void Job::end(OutcomeKind kind, std::string reason, std::optional<WorkerFailure> first_failure) {
  Outcome outcome = outcome_of(kind, std::move(reason));
  outcome.first_failure = std::move(first_failure);
  end(std::move(outcome));
}

void Job::end(Outcome outcome) {
  assert(!over());
  outcome_ = std::move(outcome);
  round_.reset();
  enter(Phase::over);
  for (const auto& [node, member] : members_.all()) tell(node, JobEnded{outcome_});
  effects_.emplace_back(JobOver{outcome_});
}

}  // namespace muster::rendezvous
