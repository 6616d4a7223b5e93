#include "trainers/parallel/wrap_policy.hpp"

namespace muster::trainers {

std::vector<LayerRange> plan_units(std::span<const std::int64_t> layer_parameters,
                                   std::int64_t min_num_params) {
  std::vector<LayerRange> units;
  std::int64_t filled = 0;
  for (std::size_t i = 0; i < layer_parameters.size(); ++i) {
    const bool is_full = filled > 0 && filled >= min_num_params;
    if (units.empty() || (is_full && layer_parameters[i] > 0)) {
      units.push_back({.first = i, .count = 0});
      filled = 0;
    }
    ++units.back().count;
    filled += layer_parameters[i];
  }
  return units;
}

}  // namespace muster::trainers
