// The length of a gradient that lies in many tensors, and shortening it.
#pragma once

#include <span>
#include <vector>

#include "trainers/tensor/parameter.hpp"

namespace muster::trainers {

/// Of all gradients, in double precision and in a fixed order.
double sum_of_squares(std::span<Parameter* const> parameters);

/// If `norm` is more than `max_norm`: multiplies all gradients by max_norm / (norm + 1e-6), as PyTorch does.
void shorten_gradients(std::span<Parameter* const> parameters, double norm, double max_norm);

}  // namespace muster::trainers
