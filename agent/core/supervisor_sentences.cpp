// What the supervisor says of itself.
#include "agent/core/supervisor.hpp"

#include <algorithm>

namespace muster::agent {

namespace {
std::string count(int number, const std::string& noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}
}  // namespace

std::string Supervisor::name_of(int local_rank) const {
  const GroupMember& member = group_.at(local_rank);
  std::string text = "rank " + std::to_string(rank_of(local_rank)) + " (local " + std::to_string(local_rank);
  if (member.pid > 0) text += ", pid " + std::to_string(member.pid);
  return text + ")";
}

std::string Supervisor::round_sentence(const RestartPhases& phases) const {
  const rendezvous::Assignment& a = *assignment_;
  const int last = a.first_rank + group_.size() - 1;
  std::string text = "round " + std::to_string(a.round) + ": " + count(a.group_world_size, "node") + ", " +
                     count(a.world_size, "worker") + ", ";
  text += group_.size() == 1 ? "rank " + std::to_string(last) + " here"
                             : "ranks " + std::to_string(a.first_rank) + "-" + std::to_string(last) + " here";
  text += "; master " + a.master_addr + ":" + std::to_string(a.master_port) + "; formed in " +
          human(std::max(a.forming_took, Duration(1)));  // "under 1 ms", not "0 s"
  if (rounds_.size() > 1) text += " (" + phases_text(phases) + ")";
  if (!a.reason.empty()) text += "; " + a.reason;
  return text;
}

std::string Supervisor::reason() const {
  if (finished_) return "it has ended";
  if (!in_round()) return "waiting for a round: " + waiting_reason_;
  const std::string round = "round " + std::to_string(assignment_->round);
  const int running = static_cast<int>(group_.running().size());
  if (running > 0 && ladder_.killed()) return round + ": waiting for " + count(running, "killed worker");
  if (running > 0 && savers_signal_at_)
    return round + ": " + count(running, "worker") + " asked to save and leave";
  if (running > 0 && ladder_.begun())
    return round + ": " + count(running, "worker") + " asked to stop, " + human(ladder_.grace()) + " at most";
  if (running > 0)
    return round + ": " + count(running, "worker") + (draining_ ? " asked to save" : " running");
  if (!group_.over()) return round + ": reading the last output of its workers";
  if (sweep_ != Sweep::done) return round + ": ending what its workers left behind";
  if (told_success_) return round + ": succeeded here, waiting for the other nodes";
  return round + ": over here, waiting for the rendezvous to decide";
}

}  // namespace muster::agent
