#include "agent/placement/topology.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "agent/placement/cpu_list.hpp"
#include "base/endpoint.hpp"
#include "base/system_files.hpp"

namespace muster::agent {

namespace {

namespace fs = std::filesystem;

constexpr int kMaxCaches = 16;

int number_in(const fs::path& path, int otherwise) {
  const auto number = parse_integer(first_line_of_file(path), 0, INT32_MAX);
  return number ? static_cast<int>(*number) : otherwise;
}

int lowest_in(const fs::path& path, int otherwise) {
  const std::vector<int> cpus = parse_cpu_list(first_line_of_file(path));
  return cpus.empty() ? otherwise : cpus.front();
}

std::map<int, int> node_of_cpus(const fs::path& root) {
  std::map<int, int> nodes;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root / "sys/devices/system/node", error)) {
    const std::string name = entry.path().filename();
    const auto node = name.starts_with("node") ? parse_integer(name.substr(4), 0, 4096) : Result<long>(-1);
    if (!node || *node < 0) continue;
    for (const int cpu : parse_cpu_list(first_line_of_file(entry.path() / "cpulist")))
      nodes[cpu] = static_cast<int>(*node);
  }
  return nodes;
}

int lowest_of_last_cache(const fs::path& cpu_folder, int otherwise) {
  int best_level = 0;
  int lowest = otherwise;
  for (int index = 0; index < kMaxCaches; ++index) {
    const fs::path cache = cpu_folder / fmt::format("cache/index{}", index);
    const int level = number_in(cache / "level", 0);
    if (level == 0) break;
    if (level <= best_level) continue;
    best_level = level;
    lowest = lowest_in(cache / "shared_cpu_list", otherwise);
  }
  return lowest;
}

}  // namespace

// The kernel says EINVAL while the mask is too small for the machine.
std::vector<int> allowed_cpus() {
  std::vector<int> found;
  for (int size = 1024; size <= 1024 * 64 && found.empty(); size *= 2) {
    cpu_set_t* set = CPU_ALLOC(size);
    const std::size_t bytes = CPU_ALLOC_SIZE(size);
    CPU_ZERO_S(bytes, set);
    const bool read = ::sched_getaffinity(0, bytes, set) == 0;
    const bool too_small = !read && errno == EINVAL;
    for (int cpu = 0; read && cpu < size; ++cpu)
      if (CPU_ISSET_S(cpu, bytes, set)) found.push_back(cpu);
    CPU_FREE(set);
    if (!too_small) break;
  }
  return found;
}

Result<Topology> read_topology(const fs::path& root, const std::vector<int>& allowed) {
  const std::map<int, int> nodes = node_of_cpus(root);
  Topology topology;
  for (const int number : allowed) {
    const fs::path folder = root / fmt::format("sys/devices/system/cpu/cpu{}", number);
    const auto node = nodes.find(number);
    if (!nodes.empty() && node == nodes.end()) continue;  // of no node: it may have gone offline
    Cpu cpu;
    cpu.number = number;
    cpu.node = node == nodes.end() ? 0 : node->second;
    cpu.socket = number_in(folder / "topology/physical_package_id", 0);
    cpu.core = lowest_in(folder / "topology/thread_siblings_list", number);
    cpu.cache = lowest_of_last_cache(folder, number);
    topology.push_back(cpu);
  }
  if (topology.empty())
    return Error{(root / "sys/devices/system/node").string(),
                 "none of the CPUs that may be used is of a node"};
  return topology;
}

}  // namespace muster::agent
