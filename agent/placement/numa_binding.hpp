// Which CPUs each worker of this node is bound to. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/placement/topology.hpp"
#include "base/numa_mode.hpp"

namespace muster::agent {

struct WorkerCpus {
  std::vector<int> cpus;  ///< ascending; never empty
  int node = 0;           ///< that they are of, or that they were chosen for
  bool by_device = false;
  bool operator==(const WorkerCpus&) const = default;
};

struct BindingWish {
  NumaMode mode = NumaMode::node;
  int local_workers = 1;
  std::vector<std::optional<int>>
      device_nodes;  ///< by local rank: the NUMA node of its device; none: no device known
};

struct Binding {
  std::vector<WorkerCpus> workers;  ///< by local rank; empty: nobody is bound
  std::vector<std::string> notes;   ///< what could not be done as wished, and why
};

/// With a device: its NUMA node. Else the nodes in turn. A device whose node has no CPU that may be used falls back to
/// the nodes in turn, with a note. The modes:
///
///   node          all CPUs of the node
///   socket        all CPUs of all nodes that share a socket with it
///   exclusive     whole cores of the node, shared out over its workers, the first ones taking what does not divide;
///                 with more workers than cores they take the cores in turn, with a note
///   core-complex  the CPUs that share one last-level cache: the node's groups, largest first, in turn
Binding bind_workers(const BindingWish& wish, const Topology& topology);

/// "local rank 0: CPUs 0-3 (node 0), 1: CPUs 4-7 (node 1)"; of many, the first ones.
std::string binding_text(const Binding& binding);

}  // namespace muster::agent
