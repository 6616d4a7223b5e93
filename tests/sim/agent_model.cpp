#include "tests/sim/agent_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace muster::sim {

using namespace rendezvous;

namespace {

Resume resume_of(const NodeOffer& offer, const Assignment& assignment, bool workers_alive) {
  Resume resume;
  resume.offer = offer;
  resume.round = assignment.round;
  resume.group_rank = assignment.group_rank;
  resume.group_world_size = assignment.group_world_size;
  resume.first_rank = assignment.first_rank;
  resume.restart_count = assignment.restart_count;
  resume.workers_alive = workers_alive;
  resume.next_node = assignment.next_node;
  return resume;
}

WorkerFailed told_again(WorkerFailed failed, Duration age) {
  failed.age = age;
  return failed;
}

}  // namespace

std::vector<AgentMessage> AgentModel::greeting(Instant now) const {
  if (!assignment_) {
    if (leaving_) return {join(), Leave{"SIGTERM"}};
    return {join()};
  }
  std::vector<AgentMessage> messages{resume_of(offer_, *assignment_, alive_workers())};
  if (failure_) messages.emplace_back(told_again(*failure_, now - failed_at_));
  if (workers_ == Workers::succeeded) messages.emplace_back(WorkersSucceeded{assignment_->round});
  if (safe_) messages.emplace_back(WorkersSafe{assignment_->round, 1});
  if (leaving_) messages.emplace_back(Leave{"SIGTERM"});
  return messages;
}

/// What the link answers for an agent that has joined again: see LinkMemory.
std::vector<AgentMessage> AgentModel::place_in_the_past(int round, Instant now) const {
  std::vector<AgentMessage> messages;
  if (!assignment_ && past_ && past_->round == round) {
    messages.emplace_back(resume_of(offer_, *past_, false));
    if (past_failure_) messages.emplace_back(told_again(*past_failure_, now - failed_at_));
    messages.emplace_back(WorkersStopped{round});
  }
  for (AgentMessage& again : greeting(now)) messages.push_back(std::move(again));
  return messages;
}

AgentModel::Reply AgentModel::hear(const DaemonMessage& message, Instant now) {
  Reply reply;
  if (const auto* assignment = std::get_if<Assignment>(&message)) {
    if (assignment_ && assignment_->round == assignment->round) return reply;
    if (assignment_)
      reply.error = fmt::format("{} got round {} while it still has round {}", offer_.node, assignment->round,
                                assignment_->round);
    assignment_ = *assignment;
    last_round_ = assignment->round;
    restart_count_ = assignment->restart_count;
    why_ended_.clear();
    workers_ = Workers::running;
  } else if (const auto* drain = std::get_if<Drain>(&message)) {
    if (assignment_ && drain->round == assignment_->round && !drain_asked_) {
      drain_asked_ = true;
      reply.chore = Chore::save;
    }
  } else if (const auto* stop = std::get_if<StopWorkers>(&message)) {
    if (stop->reason.empty()) {
      reply.messages = place_in_the_past(stop->round, now);
    } else if (assignment_ && stop->round == assignment_->round) {
      restart_count_ = std::max(restart_count_, stop->restart_count);
      if (stop->cause_is_known && why_ended_.empty()) why_ended_ = stop->reason;
      if (!std::exchange(stop_asked_, true)) reply.chore = Chore::stop;
    }
  } else if (const auto* ended = std::get_if<JobEnded>(&message)) {
    outcome_ = ended->outcome;
    workers_ = Workers::none;
  } else if (const auto* refused = std::get_if<Refused>(&message)) {
    refused_ = *refused;
    workers_ = Workers::none;
  } else if (const auto* inject = std::get_if<Inject>(&message)) {
    const int first = assignment_ ? assignment_->first_rank : 0;
    const bool own = assignment_ && inject->rank >= first && inject->rank < first + offer_.local_workers;
    if (inject->rank && alive_workers() && !own)
      reply.error =
          fmt::format("{} is to send a signal to rank {}, which is not its own", offer_.node, *inject->rank);
    reply.fault = *inject;
  }
  return reply;
}

std::vector<AgentMessage> AgentModel::done(Chore chore, int round) {
  if (!assignment_ || assignment_->round != round) return {};
  if (chore == Chore::save) {
    if (stop_asked_) return {};
    safe_ = true;
    return {WorkersSafe{round, 1}};
  }
  past_ = std::exchange(assignment_, std::nullopt);
  past_failure_ = std::exchange(failure_, std::nullopt);
  workers_ = Workers::none;
  drain_asked_ = safe_ = stop_asked_ = false;
  if (leaving_) return {WorkersStopped{round}};
  offer_.store_port = static_cast<std::uint16_t>(offer_.store_port + 1);
  return {WorkersStopped{round}, join()};
}

std::vector<AgentMessage> AgentModel::worker_fails(int exit_code, std::int64_t lived_ms, Instant now) {
  failed_at_ = now;
  workers_ = Workers::failed;
  failure_ = WorkerFailed{assignment_->round, {}};
  failure_->failure.node = offer_.node;
  failure_->failure.rank = assignment_->first_rank;
  failure_->failure.round = assignment_->round;
  failure_->failure.lived_ms = lived_ms;
  failure_->failure.cause = ExitCause::exited(exit_code);
  return {*failure_};
}

std::vector<AgentMessage> AgentModel::workers_make_a_step() { return {Progress{assignment_->round, 1}}; }

std::vector<AgentMessage> AgentModel::workers_succeed() {
  workers_ = Workers::succeeded;
  return {WorkersSucceeded{assignment_->round}};
}

std::vector<AgentMessage> AgentModel::leave() {
  leaving_ = true;
  return {Leave{"SIGTERM"}};
}

}  // namespace muster::sim
