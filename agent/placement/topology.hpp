// Which CPUs this process may use, and how they belong together, as /sys says.
#pragma once

#include <filesystem>
#include <vector>

#include "base/error.hpp"

namespace muster::agent {

struct Cpu {
  int number = 0;
  int node = 0;    ///< NUMA node
  int socket = 0;  ///< physical package
  int core = 0;    ///< lowest number of the CPUs that are threads of the same core
  int cache = 0;   ///< lowest number of the CPUs that share its last-level cache
  bool operator==(const Cpu&) const = default;
};

using Topology = std::vector<Cpu>;  ///< ascending by number

/// CPUs of this process's affinity mask.
std::vector<int> allowed_cpus();

/// `root`: where /sys is looked for, "/" but in tests. CPUs that are not `allowed` are left out. A machine whose /sys
/// tells of no NUMA nodes has one; a CPU of which no threads or caches are told shares with nobody.
Result<Topology> read_topology(const std::filesystem::path& root, const std::vector<int>& allowed);

}  // namespace muster::agent
