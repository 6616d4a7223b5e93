#include "rendezvous/client/link_memory.hpp"

namespace muster::rendezvous {

void LinkMemory::note_sent(const AgentMessage& message, Instant now) {
  if (const auto* join = std::get_if<Join>(&message)) {
    join_ = *join;
    joining_ = true;
    leave_.reset();
  }
  if (const auto* failed = std::get_if<WorkerFailed>(&message))
    if (!said_.failed && !said_.stop_heard) {
      said_.failed = *failed;
      said_.failed_at = now - failed->age;
    }
  if (const auto* safe = std::get_if<WorkersSafe>(&message)) said_.safe = *safe;
  if (const auto* stopped = std::get_if<WorkersStopped>(&message)) said_.stopped = *stopped;
  if (const auto* succeeded = std::get_if<WorkersSucceeded>(&message)) said_.succeeded = *succeeded;
  if (const auto* leave = std::get_if<Leave>(&message)) leave_ = *leave;
}

void LinkMemory::note_received(const DaemonMessage& message) {
  if (const auto* assignment = std::get_if<Assignment>(&message)) {
    // The same one again (after a Resume whose answer crossed) changes nothing.
    if (assignment_ && assignment_->round == assignment->round && !joining_) return;
    assignment_ = *assignment;
    said_ = {};
    joining_ = false;
  }
  if (const auto* stop = std::get_if<StopWorkers>(&message))
    if (assignment_ && assignment_->round == stop->round) said_.stop_heard = true;
  if (std::holds_alternative<JobEnded>(message) || std::holds_alternative<Refused>(message)) over_ = true;
}

std::vector<AgentMessage> LinkMemory::restatement(Instant now) const {
  if (!join_) return {};
  if (!joining_ && assignment_) return place(now);
  std::vector<AgentMessage> messages{*join_};
  if (leave_) messages.emplace_back(*leave_);
  return messages;
}

std::vector<AgentMessage> LinkMemory::answer_to(const DaemonMessage& message, Instant now) const {
  const auto* stop = std::get_if<StopWorkers>(&message);
  if (!stop || !stop->reason.empty()) return {};
  std::vector<AgentMessage> messages;
  if (joining_ && assignment_ && assignment_->round == stop->round) messages = place(now);
  for (AgentMessage& again : restatement(now)) messages.push_back(std::move(again));
  return messages;
}

/// What became of its success is told by what made it join again.
std::vector<AgentMessage> LinkMemory::place(Instant now) const {
  const bool alive =
      !joining_ && !said_.stop_heard && !said_.failed && !said_.safe && !said_.stopped && !said_.succeeded;
  std::vector<AgentMessage> messages{Resume{join_->offer, assignment_->round, assignment_->group_rank,
                                            assignment_->group_world_size, assignment_->first_rank,
                                            assignment_->restart_count, alive, assignment_->next_node}};
  if (said_.failed)
    messages.emplace_back(WorkerFailed{said_.failed->round, said_.failed->failure, now - said_.failed_at});
  // It is why the workers stopped.
  if (leave_ && !joining_) messages.emplace_back(*leave_);
  if (said_.safe) messages.emplace_back(*said_.safe);
  if (said_.stopped) messages.emplace_back(*said_.stopped);
  if (said_.succeeded && !joining_) messages.emplace_back(*said_.succeeded);
  return messages;
}

}  // namespace muster::rendezvous
