// Which of the GPUs that a process can see is a worker's: pure.
#pragma once

#include <optional>
#include <string>

namespace muster::trainers {

struct GpuChoice {
  int index = 0;
  std::string problem;  ///< why there is none; empty: `index` it is
};

/// The worker's local rank among the visible ones, as under torchrun. A launcher that shows each worker a single GPU by
/// CUDA_VISIBLE_DEVICES (`muster --isolate-gpus`) has made the choice itself.
GpuChoice choose_gpu(int visible, int local_rank, const std::optional<std::string>& visible_devices);

}  // namespace muster::trainers
