// What it means to be the first process of a container: everything in it ends with this one.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace muster::launcher {

/// As the first process, waits until the rendezvous daemon that it started has left, which it does after its last
/// job: the other nodes' jobs would lose it otherwise. It waits no longer once `stop_fd` can be read. As any other
/// process it returns at once, and the daemon lives on. `daemon`: -1 for none.
void outstay(pid_t daemon, int stop_fd, const std::function<void(const std::string&)>& say);

}  // namespace muster::launcher
