// NVIDIA's management library, opened at run time: muster neither links it nor needs it.
#pragma once

#include <string>
#include <vector>

#include "agent/placement/gpus.hpp"

namespace muster::agent {

/// Whole GPUs, and in place of one that is cut into slices (MIG) its slices. Empty where the library is missing or finds
/// none. numa_node is left open.
std::vector<Gpu> gpus_of_nvml(const std::string& library);

}  // namespace muster::agent
