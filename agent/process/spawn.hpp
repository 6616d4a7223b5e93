// Starts one worker process: fork, set up, exec.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <boost/asio/any_io_executor.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace muster::agent {

struct SpawnRequest {
  std::string executable;                ///< a path; no search
  std::vector<std::string> arguments;    ///< without argv[0], which is the executable's path
  std::vector<std::string> environment;  ///< "NAME=value"
  int stdin_fd = 0;
  int stdout_fd = 1;
  int stderr_fd = 2;
  std::optional<::rlimit> descriptor_limit;  ///< the new process's; none: as here
  int guard_fd = -1;                         ///< Guard::fd(); -1: no guard
  int cgroup_entrance = -1;                  ///< Guard::cgroup_entrance(); -1: no cgroup
  std::vector<int> cpus;                     ///< that it is bound to before its exec; empty: as here
};

/// What the new process has: a process group of its own; SIGKILL when the calling thread's process dies; no
/// descriptor but 0, 1 and 2; an empty signal mask; default dispositions, except that SIGHUP stays ignored if
/// it is ignored here (nohup). Of `cpus` those count that may still be used; if there are none it is not bound.
/// Returns after its exec. A failed exec gives its errno and leaves no process.
Result<pid_t> spawn(boost::asio::any_io_executor executor, const SpawnRequest& request);

}  // namespace muster::agent
