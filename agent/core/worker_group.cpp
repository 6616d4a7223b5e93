#include "agent/core/worker_group.hpp"

#include <algorithm>

namespace muster::agent {

namespace {

bool contains(const std::vector<int>& signals, int number) {
  return std::find(signals.begin(), signals.end(), number) != signals.end();
}

/// What an exit code comes of is not known: it followed our wish, which is all that is said of it.
void say_whose_work_it_was(const GroupMember& member, ExitCause& cause) {
  const bool signalled = cause.kind == ExitCause::Kind::signalled;
  if (signalled && contains(member.rehearsed, cause.value)) cause.evidence = kRehearsed;
  if (!member.asked_to_stop || member.ended_unasked) return;
  cause.stopped_by_muster = !signalled || contains(member.signals, cause.value);
  if (!cause.stopped_by_muster)
    cause.evidence += std::string(cause.evidence.empty() ? "" : "; ") + "muster had asked it to stop before";
}

}  // namespace

void WorkerGroup::started(int local_rank, int pid, Instant now) {
  GroupMember& member = at(local_rank);
  member.state = GroupMember::State::running;
  member.pid = pid;
  member.started_at = now;
}

void WorkerGroup::ended(int local_rank, ExitCause cause, std::int64_t unix_time_ms, Instant now) {
  GroupMember& member = at(local_rank);
  if (member.state == GroupMember::State::ended) return;
  if (member.state == GroupMember::State::running) member.lived = now - member.started_at;
  member.state = GroupMember::State::ended;
  member.ended_unix_ms = unix_time_ms;
  say_whose_work_it_was(member, cause);
  if (cause.kind == ExitCause::Kind::start_failed) start_failed_ = true;
  const bool may_leave = member.done || member.safe || member.asked_to_stop;
  member.left_early = needs_ == SuccessNeeds::exit_0_after_done && cause.success() && !may_leave;
  if (member.left_early) cause.evidence = "it had not said that it was done";
  member.cause = std::move(cause);
  if (!member.exited_well() && !member.asked_to_stop && !first_failure_) first_failure_ = local_rank;
}

std::vector<int> WorkerGroup::running() const {
  std::vector<int> found;
  for (int local_rank = 0; local_rank < size(); ++local_rank) {
    const GroupMember& member = at(local_rank);
    if (member.state == GroupMember::State::running && !member.abandoned) found.push_back(local_rank);
  }
  return found;
}

bool WorkerGroup::over() const {
  return std::all_of(members_.begin(), members_.end(), [this](const GroupMember& member) {
    if (member.state == GroupMember::State::not_started) return start_failed_;
    return member.abandoned || (member.state == GroupMember::State::ended && member.output_taken);
  });
}

bool WorkerGroup::all_succeeded() const {
  return std::all_of(members_.begin(), members_.end(), [](const GroupMember& member) {
    return member.state == GroupMember::State::ended && member.exited_well() && !member.asked_to_stop;
  });
}

bool WorkerGroup::any_saved() const {
  return std::any_of(members_.begin(), members_.end(), [](const GroupMember& member) { return member.safe; });
}

std::vector<std::int64_t> WorkerGroup::steps() const {
  std::vector<std::int64_t> found;
  for (const GroupMember& member : members_)
    if (member.step >= 0) found.push_back(member.step);
  return found;
}

}  // namespace muster::agent
