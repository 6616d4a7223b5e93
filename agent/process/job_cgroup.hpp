// A cgroup (v2) of the job's own, below the agent's: what a worker starts stays in it, whatever session and environment
// it gives itself, so that a job can be ended as a whole also by somebody who is not the parent of its processes.
//
// It has no controllers and changes no limit, share or counter. Where that cannot be (no cgroup v2, a folder that is
// not ours to write, controllers handed down from the agent's) there is none, and nothing here does anything.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/unique_fd.hpp"

namespace muster::agent {

/// The folder of a process's cgroup v2, from the texts of its /proc/PID/mountinfo and /proc/PID/cgroup. In a container
/// the first may show a part of the tree only; none where that does not hold the cgroup.
std::optional<std::filesystem::path> cgroup_v2_folder(const std::string& mountinfo,
                                                      const std::string& cgroup);

class JobCgroup {
 public:
  JobCgroup() = default;  ///< none
  /// "muster-ID"; the id begins with this process's number and a dot. Removes empty ones of processes that are gone.
  static JobCgroup make(const std::string& id, const std::filesystem::path& proc = "/proc");

  explicit operator bool() const { return static_cast<bool>(entrance_); }
  /// For cgroup_enter() in a child, between fork and exec; -1: none.
  int entrance() const { return entrance_.get(); }

  // For the guard, too: no allocation, no descriptor that is kept, no error (what cannot be done, is not).

  /// The first process to enter any cgroup waits some 10 ms for the kernel; those after it do not.
  void enter_and_leave() const;
  void kill_all() const;
  bool has_processes() const;
  void remove() const;

 private:
  std::string folder_;
  std::string kill_file_;
  std::string events_file_;
  std::string entrance_file_;
  std::string exit_file_;  ///< the entrance of the cgroup above
  UniqueFd entrance_;
};

/// This process and all that it starts from now on belong to it. Safe between fork and exec.
void cgroup_enter(int entrance);

}  // namespace muster::agent
