#include "trainers/device/choose_gpu.hpp"

#include <fmt/format.h>

namespace muster::trainers {

GpuChoice choose_gpu(int visible, int local_rank, const std::optional<std::string>& visible_devices) {
  if (local_rank < visible) return {.index = local_rank, .problem = {}};
  const auto shown =
      visible_devices ? fmt::format(" (CUDA_VISIBLE_DEVICES={})", *visible_devices) : std::string();
  if (visible == 0) return {.index = 0, .problem = "no GPU is visible here" + shown};
  if (visible == 1 && visible_devices) return {.index = 0, .problem = {}};
  return {
      .index = 0,
      .problem = fmt::format("LOCAL_RANK is {}, and {} GPU{} visible here{}; start as many workers on this "
                             "node, one for each",
                             local_rank, visible, visible == 1 ? " is" : "s are", shown)};
}

}  // namespace muster::trainers
