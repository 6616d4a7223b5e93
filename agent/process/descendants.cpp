#include "agent/process/descendants.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "agent/process/proc_files.hpp"
#include "base/error.hpp"

namespace muster::agent {

namespace {

// It is our child and not reaped, so it exists; whoever changed its user (EPERM) is told as a survivor later.
void end_child(pid_t pid) { static_cast<void>(::kill(pid, SIGKILL)); }

}  // namespace

Descendants::Descendants(boost::asio::any_io_executor executor)
    : child_signal_(executor, SIGCHLD), sweep_limit_(executor) {
  for (const pid_t pid : own_children()) spare(pid);
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
    throw ErrorException(errno_error("becoming the parent of orphans (PR_SET_CHILD_SUBREAPER)", errno));
  wait_for_child();
}

void Descendants::worker_started(pid_t pid) { workers_.insert(pid); }

void Descendants::worker_ended(pid_t pid, int round, int rank) {
  workers_.erase(pid);
  ended_.emplace(std::to_string(round), std::to_string(rank));
  kill_of_ended_workers();
}

void Descendants::sweep(Duration limit, Swept done) {
  swept_ = std::move(done);
  sweep_limit_.expires_after(limit);
  sweep_limit_.async_wait([this](const boost::system::error_code& error) {
    if (error || !swept_) return;
    reap();
    std::vector<std::string> survivors;
    for (const pid_t pid : orphans()) survivors.push_back(state_sentence(pid) + " and outlived SIGKILL");
    std::exchange(swept_, nullptr)(std::move(survivors));
  });
  continue_sweep();
}

void Descendants::stop() {
  swept_ = nullptr;
  child_signal_.cancel();
  sweep_limit_.cancel();
}

// SIGCHLDs melt into one, so each of them means: look at all children.
void Descendants::wait_for_child() {
  child_signal_.async_wait([this](const boost::system::error_code& error, int) {
    if (error) return;
    wait_for_child();
    if (tell_) tell_();
    if (swept_)
      continue_sweep();
    else
      kill_of_ended_workers();
  });
}

void Descendants::reap() {
  for (const pid_t pid : orphans()) {
    siginfo_t info{};
    // ECHILD, if somebody was quicker, is as good.
    static_cast<void>(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | __WALL));
  }
}

void Descendants::kill_of_ended_workers() {
  reap();
  for (const pid_t pid : orphans()) {
    const auto round = started_with(pid, "MUSTER_ROUND");
    const auto rank = started_with(pid, "RANK");
    if (round && rank && ended_.contains({*round, *rank})) end_child(pid);
  }
}

// Only direct children are killed: their numbers are ours until we reap them. As they die, their own children
// become ours and raise the next SIGCHLD, or are found here in the same pass.
void Descendants::continue_sweep() {
  reap();
  const std::vector<pid_t> left = orphans();
  if (left.empty()) {
    ended_.clear();
    sweep_limit_.cancel();
    return std::exchange(swept_, nullptr)({});
  }
  for (const pid_t pid : left) end_child(pid);
}

bool Descendants::any_left_of(const WorkerKin& worker) {
  reap();
  return !left_of(worker).empty();
}

std::string Descendants::names_of_rest(const WorkerKin& worker) {
  constexpr std::size_t kMostNames = 3;
  reap();
  const std::vector<pid_t> left = left_of(worker);
  std::string text;
  for (std::size_t index = 0; index < std::min(left.size(), kMostNames); ++index)
    text += (index == 0 ? "" : ", ") + name_with_command(left[index]);
  if (left.size() > kMostNames) text += " and " + std::to_string(left.size() - kMostNames) + " more";
  return text;
}

void Descendants::signal_strays_of(const WorkerKin& worker, int signal_number) {
  for (const pid_t pid : left_of(worker))
    if (::getpgid(pid) != worker.leader)
      static_cast<void>(
          ::kill(pid, signal_number));  // our child, not reaped; of another user: swept and told later
}

std::vector<pid_t> Descendants::left_of(const WorkerKin& worker) const {
  std::vector<pid_t> found;
  for (const pid_t pid : orphans()) {
    const bool of_its_group = ::getpgid(pid) == worker.leader;
    if (of_its_group || (started_with(pid, "MUSTER_ROUND") == std::to_string(worker.round) &&
                         started_with(pid, "RANK") == std::to_string(worker.rank)))
      found.push_back(pid);
  }
  return found;
}

std::vector<pid_t> Descendants::orphans() const {
  std::vector<pid_t> found;
  for (const pid_t pid : own_children())
    if (!spared_.contains(pid) && !workers_.contains(pid)) found.push_back(pid);
  return found;
}

}  // namespace muster::agent
