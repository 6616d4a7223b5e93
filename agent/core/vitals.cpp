#include "agent/core/vitals.hpp"

#include <algorithm>

#include "agent/core/supervisor.hpp"

namespace muster::agent {

const char* word_for(AgentState state) {
  switch (state) {
    case AgentState::waiting:
      return "waiting";
    case AgentState::running:
      return "running";
    case AgentState::draining:
      return "draining";
    case AgentState::stopping:
      return "stopping";
    case AgentState::ended:
      return "ended";
  }
  return "ended";
}

bool Vitals::healthy() const {
  return std::none_of(workers.begin(), workers.end(),
                      [](const WorkerVitals& worker) { return worker.stuck; });
}

AgentState Supervisor::state() const {
  if (finished_) return AgentState::ended;
  if (!in_round()) return AgentState::waiting;
  const bool some_run = !group_.running().empty();
  if (some_run && savers_signal_at_) return AgentState::draining;
  if (some_run && ladder_.begun()) return AgentState::stopping;
  if (some_run) return draining_ ? AgentState::draining : AgentState::running;
  return told_success_ ? AgentState::draining : AgentState::stopping;
}

// Nobody makes steps while there is no round, or while it ends: only in a round that runs is silence a fault.
Vitals Supervisor::vitals(Instant now) const {
  Vitals vitals{state(), reason(), last_round_, in_round() ? assignment_->world_size : 0, restart_count_, {}};
  if (!in_round()) return vitals;
  for (int local_rank = 0; local_rank < group_.size(); ++local_rank) {
    const GroupMember& member = group_.at(local_rank);
    WorkerVitals worker{
        rank_of(local_rank), local_rank, member.pid, member.state == GroupMember::State::running,
        member.step,         {},         false};
    if (member.progress_at) worker.since_progress = now - *member.progress_at;
    worker.stuck = vitals.state == AgentState::running && worker.alive && options_.progress_limit &&
                   worker.since_progress > options_.progress_limit;
    vitals.workers.push_back(worker);
  }
  return vitals;
}

}  // namespace muster::agent
