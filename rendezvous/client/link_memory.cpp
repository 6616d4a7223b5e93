#include "rendezvous/client/link_memory.hpp"

namespace muster::rendezvous {

void LinkMemory::note_sent(const AgentMessage& message) {
  if (const auto* join = std::get_if<Join>(&message)) {
    join_ = *join;
    joining_ = true;
    leave_.reset();
  }
  if (const auto* failed = std::get_if<WorkerFailed>(&message))
    if (!said_.failed) said_.failed = *failed;
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
  if (std::holds_alternative<JobEnded>(message) || std::holds_alternative<Refused>(message)) over_ = true;
}

std::vector<AgentMessage> LinkMemory::restatement() const {
  std::vector<AgentMessage> messages;
  if (!join_) return messages;
  if (joining_ || !assignment_) {
    messages.push_back(*join_);
    if (leave_) messages.push_back(*leave_);
  } else {
    const bool alive = !said_.failed && !said_.safe && !said_.stopped && !said_.succeeded;
    messages.push_back(Resume{join_->offer, assignment_->round, assignment_->group_rank,
                              assignment_->group_world_size, assignment_->first_rank,
                              assignment_->restart_count, alive, assignment_->next_node});
    if (said_.failed) messages.push_back(*said_.failed);
    // It is why the workers stopped.
    if (leave_) messages.push_back(*leave_);
    if (said_.safe) messages.push_back(*said_.safe);
    if (said_.stopped) messages.push_back(*said_.stopped);
    if (said_.succeeded) messages.push_back(*said_.succeeded);
  }
  return messages;
}

}  // namespace muster::rendezvous
