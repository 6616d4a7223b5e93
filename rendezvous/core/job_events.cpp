// What a Job does with each event. Whatever follows from the passing of time or from a changed membership is
// decided by advance(), in job_rounds.cpp.
#include <fmt/format.h>

#include <algorithm>

#include "rendezvous/core/job.hpp"
#include "rendezvous/core/sentences.hpp"

namespace muster::rendezvous {

void Job::on(const FromAgent& event) {
  if (const auto* join = std::get_if<Join>(&event.message); over() && !join) {
    if (!std::holds_alternative<Heartbeat>(event.message)) tell(event.node, JobEnded{outcome_});
    return;
  }
  const bool may_change_something = matters(event);
  std::visit([&](const auto& message) { hear(event.node, message); }, event.message);
  if (may_change_something) advance();
}

/// Signs of life are too many to look at everything for each of them; but newcomers wait for a round's first step.
bool Job::matters(const Event& event) const {
  const auto* from = std::get_if<FromAgent>(&event);
  if (!from) return true;
  if (const auto* progress = std::get_if<Progress>(&from->message))
    return progress->step >= 0 && live(progress->round) && !round_->any_step();
  return !std::holds_alternative<Heartbeat>(from->message);
}

void Job::hear(const NodeId& node, const Join& join) {
  if (join.offer.node != node || join.offer.local_workers < 1 || join.offer.local_workers > max_local_workers)
    return tell(
        node, Refused{RefusalCode::malformed, fmt::format("a Join of {} names node '{}' with {} workers",
                                                          node, join.offer.node, join.offer.local_workers)});
  const Member* member = members_.find(node);
  if (over()) {
    const bool known = member && member->offer.incarnation == join.offer.incarnation;
    if (known) return tell(node, JobEnded{outcome_});
    return tell(node, Refused{RefusalCode::job_over, reason(now_)});
  }
  if (member && member->offer.incarnation != join.offer.incarnation) {
    lose(node, "its agent was started anew");
    if (over()) return tell(node, JobEnded{outcome_});
    member = nullptr;
  }
  if (!member) {
    if (const auto refused = refusal(join.offer, now_)) return tell(node, *refused);
  }
  learn(join.last_round, join.restart_count);
  hear_of_end(join);
  const bool expected = round_ && round_->expects(node);
  if (expected && join.last_round != round_->number()) {
    if (!lose_expected(node, join.last_round)) return tell(node, JobEnded{outcome_});
    member = nullptr;
  }
  if (!settle_claim(join.offer)) return;
  if (member && member->drained) {
    if (round_ && member->stand == Stand::seated) round_->mark_stopped(node);
    return dismiss(node);
  }
  if (member && member->stand == Stand::seated && !seated_join(*member, join)) return;
  if (!members_.find(node)) gathering_.settle.note(now_);
  members_.join(join.offer, Stand::ready);
  growth_.note(now_);
  newcomers_.insert(node);
  if (expected && round_ && round_->expects(node)) ask_for_place(node);
}

/// A Join from a node of the live round. False if that is all there is to do.
bool Job::seated_join(const Member& member, const Join& join) {
  const NodeId node = member.offer.node;
  const Seat& seat = *round_->seat(node);
  const bool untouched = !seat.safe && !seat.failed && !seat.succeeded && !seat.stopped;
  if (phase_ == Phase::running && untouched && !round_->state().adopted && member.offer == join.offer) {
    // It never heard of the round: the connection broke before the assignment had arrived.
    members_.back(node);
    tell(node, round_->assignment(node));
    return false;
  }
  if (phase_ == Phase::running) {
    lose(node, "it joined anew, without its workers");
    if (!over()) return true;
    tell(node, JobEnded{outcome_});
    return false;
  }
  round_->mark_stopped(node);
  return true;
}

/// Two nodes with one --node-rank: before there is a job to protect, both are sent away, each with both
/// names. Later only the newcomer is; but a node whose connection is gone holds no claim against a live one.
bool Job::settle_claim(const NodeOffer& offer) {
  if (!offer.preferred_group_rank) return true;
  const auto holder_name = members_.claimant(*offer.preferred_group_rank);
  if (!holder_name || *holder_name == offer.node) return true;
  const Member& holder = *members_.find(*holder_name);
  if (!holder.connected()) {
    lose(*holder_name, fmt::format("{} took over its node rank", offer.node));
    return !over();
  }
  const Refused refused{RefusalCode::conflicting_claim,
                        fmt::format("node rank {} is claimed by {} ({}) and {} ({}): each node needs its own",
                                    *offer.preferred_group_rank, *holder_name, holder.offer.address,
                                    offer.node, offer.address)};
  tell(offer.node, refused);
  if (members_.find(offer.node)) dismiss(offer.node);
  if (last_round_ > 0) return false;
  tell(*holder_name, refused);
  dismiss(*holder_name);
  return false;
}

void Job::hear(const NodeId& node, const WorkerFailed& failed) {
  if (!live(failed.round) || !round_->seat(node)) return;
  round_->mark_failed(node);
  const Instant at = now_ - std::clamp<Duration>(failed.age, Duration::zero(), std::chrono::hours(24));
  if (phase_ == Phase::stopping && !ending_.cause_is_known) return suspect({node, failed.failure, at});
  // A round that already ends needs no second cause: what fails now is a consequence.
  if (phase_ != Phase::running || lose_those_away()) return;
  if (others_may_know_more(at)) {
    stop_round_for_unknown_cause();
    return suspect({node, failed.failure, at});
  }
  const auto reason = charge(node, failed.failure);
  if (!reason) return;
  if (staying() < policy_.min_nodes)
    return end(OutcomeKind::failed, what_failed(failed.failure) + ", and nodes that had finished are gone",
               failed.failure);
  stop_round(*reason, Cost::restart);
}

/// The first failure of a round: why the next one is needed; nothing if the job is over with it.
std::optional<std::string> Job::charge(const NodeId& node, const WorkerFailure& failure) {
  cooldown_.strike(node, now_);
  const std::string what = what_failed(failure);
  const Verdict verdict = ledger_.judge(failure, now_);
  if (verdict.restart) return verdict.reason + " after " + what;
  end(OutcomeKind::failed, verdict.reason.empty() ? what : what + ", " + verdict.reason, failure);
  return std::nullopt;
}

/// Workers fail because their peers' machine is gone, and often say so before its time to come back is over.
/// The loss came first, so it is the cause.
bool Job::lose_those_away() {
  for (const NodeId& node : members_.away_nodes()) {
    const Member& member = *members_.find(node);
    if (member.stand != Stand::seated || !member.away_by_itself || round_->seat(node)->succeeded) continue;
    lose(node, member.away_reason);
    if (phase_ != Phase::running) return true;
  }
  return false;
}

void Job::hear(const NodeId& node, const WorkersSafe& safe) {
  if (!live(safe.round) || !round_->seat(node)) return;
  if (phase_ == Phase::draining) round_->mark_safe(node, safe.step);
  if (phase_ != Phase::running) return;
  note_change();
  may_be_old_news() ? stop_round_for_unknown_cause() : stop_round(node + "'s workers saved and left unasked");
}

void Job::hear(const NodeId& node, const WorkersStopped& stopped) {
  const Member* member = members_.find(node);
  if (!live(stopped.round) || !member || member->stand != Stand::seated) return;
  round_->mark_stopped(node);
  if (!member->leaving.empty() && !member->drained) return dismiss(node);
  if (phase_ == Phase::running) {
    note_change();
    may_be_old_news() ? stop_round_for_unknown_cause() : stop_round(node + " stopped its workers by itself");
  }
  members_.set_stand(node, Stand::between);
}

void Job::hear(const NodeId& node, const WorkersSucceeded& succeeded) {
  if (!live(succeeded.round) || phase_ == Phase::stopping || !round_->seat(node)) return;
  round_->mark_succeeded(node);
  if (!first_success_) first_success_ = now_;
}

void Job::hear(const NodeId& node, const Progress& progress) {
  if (!live(progress.round)) return;
  round_->note_step(node, progress.step);
  if (round_->any_step()) starts_are_spared_ = true;
}

void Job::hear(const NodeId& node, const Leave& message) {
  if (members_.find(node)) leave(node, message.reason, false, message.signal_number);
}

void Job::hear(const NodeId&, const Heartbeat&) {}

void Job::on(const ConnectionLost& event) {
  const Member* member = members_.find(event.node);
  if (!member || over()) return;
  if (!member->leaving.empty() || event.kind == LossKind::silent)
    lose(event.node, event.reason);
  else if (member->connected())
    members_.away(event.node,
                  now_ + (event.kind == LossKind::closed ? policy_.closed_grace : policy_.broken_grace), true,
                  event.reason);
  advance();
}

void Job::on(const Tick&) { advance(); }

void Job::on(const Restarted&) {
  if (over()) return;
  back_at_ = now_;
  const Instant until = now_ + policy_.resume_window;
  std::vector<NodeId> nodes;
  for (const auto& [node, member] : members_.all()) nodes.push_back(node);
  for (const NodeId& node : nodes)
    members_.away(node, until, false, "it did not come back after the daemon had");
  advance();
}

void Job::on(const CloseRoster&) {
  if (phase_ != Phase::gathering) return answer(false, "no round is being formed now: " + reason(now_));
  const int here = roster().here;
  if (here < policy_.min_nodes)
    return answer(false,
                  fmt::format("only {} of at least {} are here", count_of(here, "node"), policy_.min_nodes));
  gathering_.roster_closed = true;
  answer(true, fmt::format("the round is formed from the {} that are here", count_of(here, "node")));
  advance();
}

void Job::on(const DrainNode& event) {
  const Member* member = members_.find(event.node);
  if (over() || !member) return answer(false, fmt::format("{} is not in job {}", event.node, id_));
  if (!member->leaving.empty()) return answer(false, event.node + " is leaving already: " + member->leaving);
  const int left = members_.staying() - 1;
  if (left == 0 || (left < policy_.min_nodes && last_round_ > 0))
    return answer(false, fmt::format("without {} only {} of at least {} would be left: stop the job instead",
                                     event.node, count_of(left, "node"), policy_.min_nodes));
  answer(true, event.node + " leaves once its workers are safe");
  leave(event.node, "drained by an operator", true);
  advance();
}

void Job::on(const Scale& event) {
  if (over()) return answer(false, reason(now_));
  JobPolicy wanted = policy_;
  wanted.min_nodes = event.min_nodes;
  wanted.max_nodes = event.max_nodes;
  if (const auto valid = validate(wanted); !valid) return answer(false, valid.error().sentence());
  policy_ = wanted;
  answer(true,
         fmt::format("job {} takes {} from now on", id_, nodes_of(policy_.min_nodes, policy_.max_nodes)));
  advance();
}

void Job::on(const ClearCooldown& event) {
  if (!cooldown_.clear(event.node)) return answer(false, event.node + " has no failures on its account");
  answer(true, event.node + " may come in at once");
  advance();
}

void Job::on(const StopJob& event) {
  if (over()) return answer(false, reason(now_));
  answer(true, "job " + id_ + " stops");
  const Outcome outcome = outcome_of(OutcomeKind::stopped, "stopped by an operator: " + event.reason);
  if (phase_ == Phase::running)
    drain(outcome.reason, outcome);
  else if (phase_ == Phase::draining)
    ending_.outcome = outcome;
  else
    end(outcome);
  advance();
}

std::optional<Refused> Job::refusal(const NodeOffer& offer, Instant now) const {
  const Member* member = members_.find(offer.node);
  const bool same_agent = member && member->offer.incarnation == offer.incarnation;
  if (over()) {
    if (same_agent) return std::nullopt;
    return Refused{RefusalCode::job_over, reason(now)};
  }
  if (same_agent) return std::nullopt;
  if (member && member->connected())
    return Refused{RefusalCode::duplicate_node,
                   fmt::format("node {} is already here ({}, {}): each node needs a name of its own",
                               offer.node, member->offer.host, member->offer.address)};
  if (static_cast<int>(members_.all().size()) >= policy_.max_nodes + max_spares)
    return Refused{RefusalCode::limit_reached, fmt::format("{} are here already, spares included",
                                                           count_of(policy_.max_nodes + max_spares, "node"))};
  const auto until = cooldown_.until(offer.node, now);
  const int strikes = cooldown_.strikes_of_late(offer.node, now);
  if (until && strikes >= policy_.cooldown_refuse_after && members_.staying() >= policy_.min_nodes)
    return Refused{RefusalCode::cooling_down,
                   fmt::format("{} failed {} times in the last minute: it may come in again in {}",
                               offer.node, strikes, human(*until - now))};
  return std::nullopt;
}

}  // namespace muster::rendezvous
