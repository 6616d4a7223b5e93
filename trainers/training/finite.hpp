// A training whose loss is no number any more: where it shows first.
#pragma once

#include <string>
#include <vector>

#include "trainers/data/dataset.hpp"
#include "trainers/tensor/parameter.hpp"

namespace muster::trainers {

/// "nan" (whatever its sign bit), "inf", "-inf", or the number.
std::string text_of_number(double value);

bool all_finite(const Tensor& tensor);

/// In the order in which a step uses them: the batch, the parameters; if those are all finite, the outputs.
/// "tensor 0.weight has nan at [3, 17]".
std::string first_not_finite(const Tensor& batch, const std::vector<Parameter*>& parameters,
                             const Tensor& outputs);

}  // namespace muster::trainers
