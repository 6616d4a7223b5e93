#include "tests/sim/judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace muster::sim {

using namespace rendezvous;

std::string Judge::look_at(const Job& job, const std::vector<Effect>& effects, Instant now) {
  Assignments sent;
  for (const Effect& effect : effects) {
    if (const auto* over = std::get_if<JobOver>(&effect))
      if (auto wrong = look_at_outcome(job, over->outcome); !wrong.empty()) return wrong;
    const auto* to_agent = std::get_if<ToAgent>(&effect);
    if (!to_agent) continue;
    if (const auto* assignment = std::get_if<Assignment>(&to_agent->message))
      sent[to_agent->node] = *assignment;
    if (const auto* drain = std::get_if<Drain>(&to_agent->message);
        drain && drain->reason.find(" joined (") != std::string::npos)
      if (auto wrong = look_at_growth(job, drain->round, now); !wrong.empty()) return wrong;
    if (const auto* waiting = std::get_if<Waiting>(&to_agent->message); waiting && waiting->reason.empty())
      return to_agent->node + " is to wait without a reason";
    if (const auto* stop = std::get_if<StopWorkers>(&to_agent->message))
      if (auto wrong = look_at_stop(*stop); !wrong.empty()) return wrong;
    if (std::holds_alternative<Inject>(to_agent->message))
      if (auto wrong = look_at_fault(job, to_agent->node); !wrong.empty()) return wrong;
    if (const auto* refused = std::get_if<Refused>(&to_agent->message))
      if (refused->code == RefusalCode::job_over && !job.over()) return "refused as over, and it is not";
  }
  if (!sent.empty()) began_.emplace(sent.begin()->second.round, now);
  if (!sent.empty())
    if (auto wrong = look_at_round(job, sent); !wrong.empty()) return wrong;
  return look_at_members(job);
}

std::string Judge::look_at_round(const Job& job, const Assignments& sent) {
  const int number = sent.begin()->second.round;
  const auto known = rounds_.find(number);
  if (known != rounds_.end() && !forgetful_) {
    for (const auto& [node, assignment] : sent)
      if (!known->second.count(node) || !(known->second.at(node) == assignment))
        return fmt::format("{} was told another round {} than before", node, number);
    return "";
  }
  if (known != rounds_.end()) return "";
  if (!forgetful_ && !rounds_.empty() && number <= rounds_.rbegin()->first)
    return fmt::format("round {} comes after round {}", number, rounds_.rbegin()->first);
  const int size = static_cast<int>(sent.size());
  if (size < job.policy().min_nodes || size > job.policy().max_nodes)
    return fmt::format("round {} has {} nodes", number, size);
  const int restarts = sent.begin()->second.restart_count;
  if (restarts > job.policy().max_restarts || (restarts < std::max(restarts_, charged_) && !forgetful_))
    return fmt::format("restart count {} after {}", restarts, std::max(restarts_, charged_));
  restarts_ = restarts;
  rounds_[number] = sent;
  return look_at_ranks(job, sent);
}

/// Newcomers do not end one round after the other before its first step.
std::string Judge::look_at_growth(const Job& job, int round, Instant now) {
  if (forgetful_ || round == grown_from_) return "";
  grown_from_ = round;
  const bool begun = stepped_.count(round) > 0 || now - began_[round] >= job.policy().first_step_timeout;
  if (!begun && starts_are_spared_)
    return fmt::format(
        "newcomers end round {} before its first step, and they have done so before or should know "
        "that there will be one",
        round);
  if (stepped_.count(round) == 0) starts_are_spared_ = !begun;
  return "";
}

/// Each round that ends with a restart costs one more than the one before.
std::string Judge::look_at_stop(const StopWorkers& stop) {
  int number = 0;
  if (forgetful_ || std::sscanf(stop.reason.c_str(), "restart %d of", &number) != 1) return "";
  if (stop.round == charged_in_round_ ? number != charged_ : number <= charged_)
    return fmt::format("round {} ends with restart {}, after restart {}", stop.round, number, charged_);
  charged_ = number;
  charged_in_round_ = stop.round;
  return "";
}

/// Nobody is hurt who has not asked for it, and none in vain.
std::string Judge::look_at_fault(const Job& job, const NodeId& node) {
  if (!job.policy().allow_chaos) return node + " is hurt, and the job allows no rehearsals";
  const Member* member = job.membership().find(node);
  return member && member->connected() ? "" : node + " is to be hurt, and is not here";
}

std::string Judge::look_at_ranks(const Job& job, const Assignments& sent) const {
  std::vector<Assignment> by_rank;
  for (const auto& [node, assignment] : sent) by_rank.push_back(assignment);
  std::sort(by_rank.begin(), by_rank.end(),
            [](const Assignment& a, const Assignment& b) { return a.group_rank < b.group_rank; });
  int group_rank = 0;
  int rank = 0;
  for (const Assignment& a : by_rank) {
    const Assignment& first = by_rank.front();
    if (a.group_rank != group_rank++ || a.group_world_size != static_cast<int>(by_rank.size()))
      return fmt::format("group ranks of round {} are not dense", a.round);
    if (a.first_rank != rank)
      return fmt::format("ranks of round {} have a gap or an overlap at {}", a.round, rank);
    rank += job.round()->state().seats.at(static_cast<std::size_t>(a.group_rank)).local_workers;
    if (a.round != first.round || a.world_size != first.world_size || a.master_port != first.master_port ||
        a.master_addr != first.master_addr || a.restart_count != first.restart_count ||
        a.reason != first.reason)
      return fmt::format("members of round {} were told different things", a.round);
  }
  if (rank != by_rank.front().world_size) return "the world size is not the sum of all workers";
  return "";
}

std::string Judge::look_at_members(const Job& job) const {
  const bool has_round =
      job.phase() == Phase::running || job.phase() == Phase::draining || job.phase() == Phase::stopping;
  if (has_round != job.round().has_value()) return "phase and round do not fit";
  if (job.over()) return "";
  if (job.reason(Instant{}).empty()) return "no reason";
  for (const auto& [node, member] : job.membership().all()) {
    if (member.stand != Stand::seated) continue;
    const Seat* seat = job.round() ? job.round()->seat(node) : nullptr;
    if (!seat) return node + " is seated without a round";
    if (seat->gone) return node + " is a member whose seat is gone";
  }
  if (job.phase() != Phase::gathering && !job.wake_at() && job.phase() != Phase::running)
    return "a round ends without a deadline";
  if (job.phase() == Phase::gathering && !job.wake_at()) return "gathering without a deadline";
  return "";
}

std::string Judge::look_at_outcome(const Job& job, const Outcome& outcome) const {
  if (outcome.reason.empty()) return "the job ended without a reason";
  switch (outcome.kind) {
    case OutcomeKind::succeeded: {
      if (rounds_.empty()) return "succeeded without a round";
      if (forgetful_) return "";
      const auto& [number, assignments] = *rounds_.rbegin();
      const auto found = succeeded_.find(number);
      for (const auto& [node, assignment] : assignments)
        if (found == succeeded_.end() || std::count(found->second.begin(), found->second.end(), node) == 0)
          return fmt::format("succeeded, but the workers of {} in round {} did not", node, number);
      return "";
    }
    case OutcomeKind::failed:
      if (outcome.first_failure && static_cast<int>(outcome.restarts.size()) < outcome.max_restarts &&
          outcome.reason.find("twice in a row") == std::string::npos &&
          outcome.reason.find("are gone") == std::string::npos && !job.policy().restart_window && !forgetful_)
        return "failed with restarts left: " + outcome.reason;
      return "";
    case OutcomeKind::preempted:
      return left_ ? "" : "preempted, but nobody left";
    case OutcomeKind::stopped:
      return stop_asked_ ? "" : "stopped, but no operator asked";
    case OutcomeKind::rendezvous_failed:
    case OutcomeKind::node_lost:
      return "";
  }
  return "";
}

std::string Judge::look_at_snapshot(const Job& job, Instant now) {
  const JobSnapshot taken = job.snapshot(now);
  const Job restored = Job::restore(taken, taken.taken_at);
  if (!(restored.snapshot(taken.taken_at) == taken)) return "a restored snapshot differs";
  if (restored.wake_at() != job.wake_at()) return "a restored job wakes at another time";
  const Instant later = taken.taken_at + std::chrono::hours(3);
  if (!(shifted_to(Job::restore(taken, later).snapshot(later), taken.taken_at) == taken))
    return "a job restored later differs by more than the time";
  return "";
}

}  // namespace muster::sim
