// This node's name in a job: stable over relaunches, and another one for each launcher of the job on a host.
#pragma once

#include <string>

#include "base/unique_fd.hpp"
#include "launcher/options.hpp"

namespace muster::launcher {

struct NodeName {
  std::string id;
  UniqueFd lock;  ///< holds the name until this process ends, however it ends
};

/// --node-id, else the host's short name; with more than one node, a second launcher of the same job on this
/// host has "HOST-2", and so on. Known by locks on files in muster-UID in the first of temporary_places(), which hosts may share; where those
/// cannot be made, it is the host's name.
NodeName take_node_name(const LauncherOptions& options, const std::string& run_id, const std::string& host,
                        const Environment& environment);

}  // namespace muster::launcher
