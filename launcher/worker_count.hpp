// How many workers --nproc-per-node means on this machine, and how the number came about.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "launcher/options.hpp"

namespace muster::launcher {

struct WorkerCount {
  int number = 1;
  std::string derivation;  ///< "cgroup quota of 2 CPUs, of 16 allowed"; empty if the user gave the number
};

/// What this process may use, as far as it can be read.
struct UsableResources {
  int affinity_cpus = 1;
  std::optional<double> quota_cpus;            ///< of the tightest cgroup; none: no quota
  int gpu_devices = 0;                         ///< /dev/nvidia0 ...
  std::optional<std::string> visible_devices;  ///< CUDA_VISIBLE_DEVICES
};

/// Reads them. The folders are given by tests only.
UsableResources usable_resources(const Environment& environment,
                                 const std::filesystem::path& cgroup_root = "/sys/fs/cgroup",
                                 const std::filesystem::path& proc = "/proc",
                                 const std::filesystem::path& dev = "/dev");

/// Pure. By affinity mask and quota, at least 1.
int usable_cpus(const UsableResources& resources);

/// Pure. auto: one for each usable GPU, else as cpu. cpu: the CPUs of the affinity mask or of the cgroup's
/// quota, whichever is less, at least 1.
Result<WorkerCount> count_workers(const WorkerCountWish& wish, const UsableResources& resources);

}  // namespace muster::launcher
