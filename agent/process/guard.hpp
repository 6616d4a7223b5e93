// A tiny process that outlives the agent by a moment: when the agent dies, by SIGKILL too, it kills what the
// agent's workers left behind. (Workers themselves carry a parent-death signal; their children do not.)
//
// Protocol: one packet a message, from the agent or from a worker between its fork and its exec.
//
//   packet = operation:u8 zero:u8[3] group:i32     8 bytes, host byte order, same machine
//   operation = 'a' this process group exists | 'r' it is gone | 'q' all is over, nothing is to be done
//
// The guard sends nothing: what the agent reads is the guard's own death. Another one takes its place and is told of
// the groups that exist.
//
// End of file without 'q' is the agent's death. Then: SIGKILL to each group that exists, to all of the job's cgroup where
// it has one, and to every process that was started with the mark in its environment, until there is none.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "agent/process/job_cgroup.hpp"
#include "base/error.hpp"
#include "base/unique_fd.hpp"

namespace muster::agent {

/// Who kills all that is called "muster" (`pkill -9 muster`, `pkill -9 -f muster`) must not hit it.
inline constexpr const char* kGuardName = "launch-guard";

class Guard {
 public:
  /// Forks, so call it early: the fewer pages and threads there are, the better. The guard has a session of its own (no
  /// terminal, no signal of the agent's group reaches it) and no descriptor but its end of the channel.
  static Result<Guard> start();

  Guard(Guard&& other) noexcept;
  Guard& operator=(Guard&&) = delete;
  /// Without all_is_over() the guard does its work now, as if the agent had died. Returns when it has ended.
  ~Guard();

  /// "MUSTER_AGENT=...": has to be in the environment of each worker.
  const std::string& mark() const { return mark_; }
  pid_t pid() const { return pid_; }
  /// For a worker's child side, between fork and exec: guard_announce(fd, getpid()).
  int fd() const { return channel_.get(); }
  /// For the same: cgroup_enter(). It goes with the guard.
  int cgroup_entrance() const { return cgroup_.entrance(); }

  /// It has ended, as only somebody else's signal can make it: collects it, and starts another one, with another fd() and
  /// pid(), for these groups. "was killed by SIGKILL" of the old one comes back, or why there is none now.
  Result<std::string> replace(const std::vector<pid_t>& groups);

  /// The group was killed and has no member any more.
  void group_is_gone(pid_t group);
  void all_is_over();

 private:
  Guard(std::string id, JobCgroup cgroup);
  Result<void> fork_one();

  pid_t pid_ = -1;
  UniqueFd channel_;
  std::string id_;
  std::string mark_;
  JobCgroup cgroup_;
};

/// Safe between fork and exec. A guard that is gone is no error: the worker starts all the same.
void guard_announce(int fd, pid_t group);

}  // namespace muster::agent
