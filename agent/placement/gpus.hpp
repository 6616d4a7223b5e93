// The GPUs of this machine, found without the CUDA runtime.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace muster::agent {

/// One that a process can be given: a whole one, or a slice (MIG).
struct Gpu {
  std::string name;              ///< as CUDA_VISIBLE_DEVICES takes it: "0", or a slice's "MIG-..."
  std::string uuid;              ///< "GPU-..." or "MIG-..."; may be empty
  std::string pci_address;       ///< "0000:3b:00.0"; may be empty
  std::optional<int> numa_node;  ///< none: not known
  bool operator==(const Gpu&) const = default;
};

struct GpuSources {
  std::filesystem::path root = "/";        ///< of /proc, /dev and /sys
  std::string nvml = "libnvidia-ml.so.1";  ///< opened at run time; empty: not at all
};

/// In PCI order, which NVML counts by. Asked in this order, the first that finds any: NVML; /proc/driver/nvidia/gpus;
/// /dev/nvidia0 and its like, of which nothing but the number is known.
std::vector<Gpu> find_gpus(const GpuSources& sources);

}  // namespace muster::agent
