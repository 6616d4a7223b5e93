#include "agent/placement/numa_binding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "agent/placement/cpu_list.hpp"

namespace muster::agent {

namespace {

constexpr std::size_t kMostNamed = 16;

using CpuGroups = std::vector<std::vector<int>>;

template <class Belongs>
std::vector<int> cpus_where(const Topology& topology, Belongs belongs) {
  std::vector<int> found;
  for (const Cpu& cpu : topology)
    if (belongs(cpu)) found.push_back(cpu.number);
  return found;
}

std::vector<int> cpus_of_node(const Topology& topology, int node) {
  return cpus_where(topology, [&](const Cpu& cpu) { return cpu.node == node; });
}

std::vector<int> cpus_of_its_sockets(const Topology& topology, int node) {
  std::set<int> sockets;
  for (const Cpu& cpu : topology)
    if (cpu.node == node) sockets.insert(cpu.socket);
  return cpus_where(topology, [&](const Cpu& cpu) { return sockets.contains(cpu.socket); });
}

/// The node's CPUs, those together that have the same `key`; in order of their lowest number.
CpuGroups groups_of(const Topology& topology, int node, int Cpu::*key) {
  std::map<int, std::vector<int>> by_key;
  for (const Cpu& cpu : topology)
    if (cpu.node == node) by_key[cpu.*key].push_back(cpu.number);
  CpuGroups groups;
  for (auto& [unused, cpus] : by_key) groups.push_back(std::move(cpus));
  return groups;
}

/// The `index`th of `sharers` gets its run of whole cores.
std::vector<int> share_of_cores(const CpuGroups& cores, std::size_t sharers, std::size_t index) {
  if (sharers > cores.size()) return cores[index % cores.size()];
  const std::size_t each = cores.size() / sharers;
  const std::size_t more = cores.size() % sharers;
  const std::size_t first = index * each + std::min(index, more);
  std::vector<int> cpus;
  for (std::size_t core = first; core < first + each + (index < more ? 1 : 0); ++core)
    cpus.insert(cpus.end(), cores[core].begin(), cores[core].end());
  std::sort(cpus.begin(), cpus.end());
  return cpus;
}

std::vector<int> one_complex(const Topology& topology, int node, std::size_t index) {
  CpuGroups groups = groups_of(topology, node, &Cpu::cache);
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  return groups[index % groups.size()];
}

/// Each worker's node, and whether its device says so.
std::vector<WorkerCpus> choose_nodes(const BindingWish& wish, const Topology& topology,
                                     std::vector<std::string>& notes) {
  std::set<int> usable;
  for (const Cpu& cpu : topology) usable.insert(cpu.node);
  const std::vector<int> in_turn(usable.begin(), usable.end());
  std::vector<WorkerCpus> workers(static_cast<std::size_t>(wish.local_workers));
  for (std::size_t local_rank = 0; local_rank < workers.size(); ++local_rank) {
    WorkerCpus& worker = workers[local_rank];
    const auto device = local_rank < wish.device_nodes.size() ? wish.device_nodes[local_rank] : std::nullopt;
    worker.by_device = device && usable.contains(*device);
    worker.node = worker.by_device ? *device : in_turn[local_rank % in_turn.size()];
    if (device && !worker.by_device)
      notes.push_back(fmt::format(
          "the device of local rank {} is on node {}, of which no CPU may be used: bound to node {}",
          local_rank, *device, worker.node));
  }
  return workers;
}

}  // namespace

Binding bind_workers(const BindingWish& wish, const Topology& topology) {
  Binding binding;
  binding.workers = choose_nodes(wish, topology, binding.notes);
  std::map<int, std::size_t> sharers;
  for (const WorkerCpus& worker : binding.workers) ++sharers[worker.node];
  std::map<int, std::size_t> placed;
  std::set<int> crowded;
  for (WorkerCpus& worker : binding.workers) {
    const std::size_t index = placed[worker.node]++;
    switch (wish.mode) {
      case NumaMode::node:
        worker.cpus = cpus_of_node(topology, worker.node);
        break;
      case NumaMode::socket:
        worker.cpus = cpus_of_its_sockets(topology, worker.node);
        break;
      case NumaMode::exclusive: {
        const CpuGroups cores = groups_of(topology, worker.node, &Cpu::core);
        if (sharers[worker.node] > cores.size() && crowded.insert(worker.node).second)
          binding.notes.push_back(fmt::format("node {} has {} cores for {} workers: they are not exclusive",
                                              worker.node, cores.size(), sharers[worker.node]));
        worker.cpus = share_of_cores(cores, sharers[worker.node], index);
        break;
      }
      case NumaMode::core_complex:
        worker.cpus = one_complex(topology, worker.node, index);
        break;
    }
  }
  return binding;
}

std::string binding_text(const Binding& binding) {
  std::string text;
  for (std::size_t local_rank = 0; local_rank < std::min(binding.workers.size(), kMostNamed); ++local_rank) {
    const WorkerCpus& worker = binding.workers[local_rank];
    text += fmt::format("{}{}: CPUs {} (node {})", local_rank == 0 ? "local rank " : ", ", local_rank,
                        cpu_list_text(worker.cpus), worker.node);
  }
  return binding.workers.size() > kMostNamed ? text + ", and so on" : text;
}

}  // namespace muster::agent
