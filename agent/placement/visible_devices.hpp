// Which GPUs the workers of this node see: CUDA_VISIBLE_DEVICES of each. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/placement/gpus.hpp"
#include "base/error.hpp"

namespace muster::agent {

struct DeviceWish {
  std::optional<std::string> chosen;     ///< --gpus: "0,2", "GPU-8f...", "MIG-..."
  std::optional<std::string> inherited;  ///< this process's CUDA_VISIBLE_DEVICES
  bool one_each = false;                 ///< each worker sees one of them alone
};

/// What this process may use, and hands on.
struct Devices {
  std::vector<std::string>
      names;  ///< as CUDA_VISIBLE_DEVICES takes them; a worker's default device is names[local rank]
  bool restricted = false;  ///< the workers' variable has to be set
};

/// An inherited list is read as CUDA reads it: it ends at the first -1 or empty entry. --gpus chooses from what that
/// list leaves, by position in it or by UUID (or the UUID's beginning), as CUDA would if one were started in the other.
Result<Devices> choose_devices(const DeviceWish& wish, const std::vector<Gpu>& machine);

/// Each worker's CUDA_VISIBLE_DEVICES; nothing: it is left as it was inherited. With `one_each` on a machine of which no
/// GPU is known, the local rank. Too few of them for the workers are an error.
Result<std::vector<std::optional<std::string>>> visible_to_workers(const DeviceWish& wish,
                                                                   const Devices& devices, int local_workers);

/// The machine's GPU behind a name of CUDA_VISIBLE_DEVICES: a number, or a UUID's beginning.
const Gpu* gpu_called(const std::string& name, const std::vector<Gpu>& machine);

}  // namespace muster::agent
