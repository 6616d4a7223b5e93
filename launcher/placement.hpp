// Which CPUs and GPUs each worker of this node gets.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/placement/visible_devices.hpp"
#include "launcher/options.hpp"
#include "launcher/worker_count.hpp"

namespace muster::launcher {

/// Tests put a folder there that stands for "/" when /sys, /proc/driver/nvidia and /dev are looked at.
inline constexpr const char* kMachineRootVariable = "MUSTER_MACHINE_ROOT";

struct MachineDevices {
  std::vector<agent::Gpu> gpus;  ///< empty, too, where no option asks for them
  agent::DeviceWish wish;
  agent::Devices usable;
};

struct WorkerPlacement {
  std::vector<int> cpus;                       ///< empty: as this process
  std::optional<std::string> visible_devices;  ///< CUDA_VISIBLE_DEVICES; none: as inherited
};

struct Placement {
  std::vector<WorkerPlacement> workers;  ///< by local rank
  bool virtual_local_rank = false;
  std::vector<std::string> notes;  ///< the map, and what could not be done as wished
};

/// Looks only where an option asks for it (NVML takes its time), and puts into `resources` what that says of GPUs.
Result<MachineDevices> look_at_devices(const LauncherOptions& options, const Environment& environment,
                                       UsableResources& resources);

Result<Placement> place_workers(const LauncherOptions& options, const MachineDevices& devices,
                                const Environment& environment, int local_workers);

}  // namespace muster::launcher
