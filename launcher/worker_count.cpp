#include "launcher/worker_count.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <sstream>
#include <vector>

#include "base/endpoint.hpp"
#include "base/system_files.hpp"

namespace muster::launcher {

namespace {

// The kernel says EINVAL while the mask is too small for the machine.
int cpus_of_affinity_mask() {
  for (int cpus = 1024; cpus <= 1024 * 64; cpus *= 2) {
    cpu_set_t* set = CPU_ALLOC(cpus);
    const std::size_t bytes = CPU_ALLOC_SIZE(cpus);
    const int result = ::sched_getaffinity(0, bytes, set);
    const int count = result == 0 ? CPU_COUNT_S(bytes, set) : 0;
    const bool too_small = result != 0 && errno == EINVAL;
    CPU_FREE(set);
    if (count > 0) return count;
    if (!too_small) break;
  }
  return 1;
}

std::optional<double> ratio(const std::string& quota, const std::string& period) {
  const auto quota_us = parse_integer(quota, 1, INT64_MAX);  // "max" and "-1" mean no quota
  const auto period_us = parse_integer(period, 1, INT64_MAX);
  if (!quota_us || !period_us) return std::nullopt;
  return static_cast<double>(*quota_us) / static_cast<double>(*period_us);
}

std::optional<double> quota_of_folder(const std::filesystem::path& folder) {
  std::istringstream v2(first_line_of_file(folder / "cpu.max"));
  std::string quota;
  std::string period;
  if (v2 >> quota >> period) return ratio(quota, period);
  return ratio(first_line_of_file(folder / "cpu.cfs_quota_us"),
               first_line_of_file(folder / "cpu.cfs_period_us"));
}

// This process's cgroup and all above it: the tightest counts. In a container the mount's root is the
// container's own cgroup, whatever the path says.
std::optional<double> tightest_quota(const std::filesystem::path& root, const std::filesystem::path& proc) {
  std::optional<double> tightest;
  const auto consider = [&](std::filesystem::path folder) {
    const auto quota = quota_of_folder(folder);
    if (quota && (!tightest || *quota < *tightest)) tightest = quota;
  };
  for (const CgroupLine& line : parse_cgroup_lines(text_of_file(proc / "self/cgroup"))) {
    const bool v1 = line.controls("cpu");
    if (!v1 && !line.is_v2()) continue;
    const auto base = v1 ? root / "cpu" : root;
    std::filesystem::path below = std::filesystem::path(line.path).relative_path();
    for (; !below.empty(); below = below.parent_path()) consider(base / below);
    consider(base);
  }
  return tightest;
}

int count_gpu_devices(const std::filesystem::path& dev) {
  int count = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(dev, error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("nvidia") && parse_integer(name.substr(6), 0, 4096)) ++count;
  }
  return count;
}

// As CUDA reads the variable: the list ends at the first -1; each entry is one device.
int visible_gpus(const UsableResources& resources) {
  if (!resources.visible_devices) return resources.gpu_devices;
  int count = 0;
  std::istringstream list(*resources.visible_devices);
  for (std::string entry; std::getline(list, entry, ',') && !entry.empty() && entry != "-1";) ++count;
  return resources.gpu_devices == 0 ? 0 : count;
}

bool quota_is_tighter(const UsableResources& resources) {
  return resources.quota_cpus && *resources.quota_cpus < resources.affinity_cpus;
}

WorkerCount by_cpus(const UsableResources& resources) {
  const int allowed = resources.affinity_cpus;
  const std::string derivation =
      quota_is_tighter(resources) ? fmt::format("the cgroup quota of {:.3g} CPUs, of {} in the affinity mask",
                                                *resources.quota_cpus, allowed)
                                  : fmt::format("{} CPU{} in the affinity mask, no tighter cgroup quota",
                                                allowed, allowed == 1 ? "" : "s");
  return {usable_cpus(resources), derivation};
}

}  // namespace

UsableResources usable_resources(const Environment& environment, const std::filesystem::path& cgroup_root,
                                 const std::filesystem::path& proc, const std::filesystem::path& dev) {
  return {cpus_of_affinity_mask(), tightest_quota(cgroup_root, proc), count_gpu_devices(dev),
          environment("CUDA_VISIBLE_DEVICES")};
}

int usable_cpus(const UsableResources& resources) {
  const int by_quota = quota_is_tighter(resources) ? static_cast<int>(std::floor(*resources.quota_cpus))
                                                   : resources.affinity_cpus;
  return std::max(1, by_quota);
}

Result<WorkerCount> count_workers(const WorkerCountWish& wish, const UsableResources& resources) {
  using Way = WorkerCountWish::Way;
  if (wish.way == Way::number) return WorkerCount{wish.number, ""};
  WorkerCount count;
  const int gpus = visible_gpus(resources);
  if (wish.way == Way::gpu && gpus == 0)
    return Error{
        "--nproc-per-node", "'gpu', but this process may use no GPU",
        resources.gpu_devices == 0 ? "there is no /dev/nvidia0" : "CUDA_VISIBLE_DEVICES hides all of them"};
  if (wish.way != Way::cpu && gpus > 0)
    count = {gpus, resources.visible_devices ? fmt::format("{} GPUs in CUDA_VISIBLE_DEVICES", gpus)
                                             : fmt::format("{} GPUs", gpus)};
  else
    count = by_cpus(resources);
  if (count.number > kMaxWorkersPerNode) {
    count.number = kMaxWorkersPerNode;
    count.derivation += fmt::format(", capped at {}", kMaxWorkersPerNode);
  }
  return count;
}

}  // namespace muster::launcher
