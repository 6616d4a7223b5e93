// What the kernel tells of other processes under /proc. A process that is gone, or that we may not look at,
// gives the empty answer.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace muster::agent {

/// Direct children of this process, those that are zombies included.
std::vector<pid_t> own_children();

/// The value of a variable in the environment that `pid` was started with.
std::optional<std::string> started_with(pid_t pid, const std::string& variable);

/// "pid 4711 (sleep 600)": its command line, shortened, or else its name.
std::string name_with_command(pid_t pid);

/// Its main thread catches, ignores or blocks this signal: it would not end it.
bool minds_signal(pid_t pid, int signal_number);

/// "pid 4711 (python3) is in state D (uninterruptible sleep), waiting in nfs_wait".
std::string state_sentence(pid_t pid);

}  // namespace muster::agent
