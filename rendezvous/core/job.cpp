#include "rendezvous/core/job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "rendezvous/core/sentences.hpp"

namespace muster::rendezvous {

Job::Job(std::string id, JobPolicy policy) : id_(std::move(id)), policy_(policy), ledger_(policy) {}

std::vector<Effect> Job::step(const Event& event, Instant now) {
  now_ = std::max(now_, now);
  if (!gathering_since_) gathering_since_ = now_;
  if (over()) return {};
  if (const auto* message = std::get_if<FromAgent>(&event)) take(*message);
  if (const auto* lost = std::get_if<ConnectionLost>(&event)) on(lost->node, Leave{lost->reason});
  if (const auto* stop = std::get_if<StopJob>(&event)) end({OutcomeKind::stopped, stop->reason, {}, {}, 0});
  if (phase_ == Phase::gathering && now_ >= *gathering_since_ + policy_.join_deadline)
    end({OutcomeKind::rendezvous_failed, "the join deadline has passed: " + reason(now_), {}, {}, 0});
  return std::exchange(effects_, {});
}

std::optional<Instant> Job::wake_at() const {
  if (phase_ != Phase::gathering || !gathering_since_) return std::nullopt;
  return *gathering_since_ + policy_.join_deadline;
}

std::string Job::reason(Instant now) const {
  switch (phase_) {
    case Phase::gathering:
      break;
    case Phase::running:
      return fmt::format("round {} runs: {}", round_, count_of(static_cast<int>(members_.size()), "node"));
    case Phase::stopping:
      return fmt::format("round {} is ending: {}", round_, cause_);
    case Phase::over:
      return outcome_.reason;
  }
  const auto ready = std::count_if(members_.begin(), members_.end(), [](auto& m) { return m.second.ready; });
  return fmt::format("waiting for {} more; joining ends in {}",
                     count_of(policy_.min_nodes - static_cast<int>(ready), "node"),
                     human(gathering_since_.value_or(now) + policy_.join_deadline - now));
}

void Job::take(const FromAgent& event) {
  std::visit(
      [&](const auto& message) {
        if constexpr (requires { on(event.node, message); }) on(event.node, message);
      },
      event.message);
}

void Job::on(const NodeId& node, const Join& join) {
  Member& member = members_[node];
  member.offer = join.offer;
  member.ready = true;
  member.done = false;
  const auto ready = std::count_if(members_.begin(), members_.end(), [](auto& m) { return m.second.ready; });
  if (phase_ == Phase::gathering && ready >= policy_.max_nodes) return form_round();
  tell(node, Waiting{reason(now_)});
}

void Job::form_round() {
  phase_ = Phase::running;
  ++round_;
  int world_size = 0;
  for (auto& [node, member] : members_) world_size += member.offer.local_workers;
  const NodeOffer& master = members_.begin()->second.offer;
  int group_rank = 0;
  int first_rank = 0;
  for (auto& [node, member] : members_) {
    member.ready = member.done = false;
    member.group_rank = group_rank++;
    Assignment assignment;
    assignment.round = round_;
    assignment.group_rank = member.group_rank;
    assignment.group_world_size = static_cast<int>(members_.size());
    assignment.first_rank = assignment.first_role_rank =
        std::exchange(first_rank, first_rank + member.offer.local_workers);
    assignment.world_size = assignment.role_world_size = world_size;
    assignment.restart_count = ledger_.restarts();
    assignment.max_restarts = policy_.max_restarts;
    assignment.master_addr = master.address;
    assignment.master_port = master.store_port;
    assignment.reason = cause_.empty() ? "the node is here" : cause_;
    assignment.forming_took = now_ - *gathering_since_;
    tell(node, assignment);
  }
}

void Job::on(const NodeId&, const WorkerFailed& failed) {
  if (phase_ != Phase::running || failed.round != round_) return;
  const Verdict verdict = ledger_.judge(failed.failure, now_);
  const std::string what = what_failed(failed.failure);
  if (!verdict.restart)
    return end({OutcomeKind::failed,
                verdict.reason.empty() ? what : what + ", " + verdict.reason,
                failed.failure,
                {},
                0});
  phase_ = Phase::stopping;
  cause_ = verdict.reason + " after " + what;
  for (const auto& [id, member] : members_) tell(id, StopWorkers{round_, cause_});
}

void Job::on(const NodeId& node, const WorkersStopped& stopped) {
  const auto found = members_.find(node);
  if (phase_ != Phase::stopping || stopped.round != round_ || found == members_.end()) return;
  found->second.done = true;
  if (!all_done()) return;
  phase_ = Phase::gathering;
  gathering_since_ = now_;
}

void Job::on(const NodeId& node, const WorkersSucceeded& succeeded) {
  const auto found = members_.find(node);
  if (phase_ != Phase::running || succeeded.round != round_ || found == members_.end()) return;
  found->second.done = true;
  if (all_done()) end({OutcomeKind::succeeded, "all workers finished", {}, {}, 0});
}

void Job::on(const NodeId& node, const Leave& leave) {
  if (members_.count(node)) end({OutcomeKind::preempted, node + " left: " + leave.reason, {}, {}, 0});
}

void Job::end(Outcome outcome) {
  outcome.restarts = ledger_.lines();
  outcome.max_restarts = policy_.max_restarts;
  phase_ = Phase::over;
  outcome_ = outcome;
  for (const auto& [id, member] : members_) tell(id, JobEnded{outcome});
  effects_.emplace_back(JobOver{std::move(outcome)});
}

bool Job::all_done() const {
  return std::all_of(members_.begin(), members_.end(), [](auto& m) { return m.second.done; });
}

void Job::tell(const NodeId& node, DaemonMessage message) {
  effects_.emplace_back(ToAgent{node, std::move(message)});
}

}  // namespace muster::rendezvous
