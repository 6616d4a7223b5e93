// Which layers are gathered and freed together: pure.
//
// A unit is a run of layers that follow each other. Large units need more memory while they are whole, small ones more
// messages. PyTorch's size-based policy wraps each layer of at least `min_num_params` and leaves the small ones to the
// root, which is whole all the time; here small ones are put together until they have as many.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace muster::trainers {

struct LayerRange {
  std::size_t first = 0;
  std::size_t count = 0;
};

/// `layer_parameters[i]` is the number of parameters of the i-th layer. A unit is closed by the layer that brings it to
/// `min_num_params` or over it; layers without parameters go with what is before them. Every unit has parameters, if any
/// layer has.
std::vector<LayerRange> plan_units(std::span<const std::int64_t> layer_parameters,
                                   std::int64_t min_num_params);

}  // namespace muster::trainers
