#include "trainers/tensor/relu.hpp"

#include <cassert>

#include "trainers/tensor/vectorised.hpp"

namespace muster::trainers {
namespace {

MUSTER_VECTORISED
void clamp_negative(float* values, std::int64_t count) {
  // Written so that a NaN stays one.
  for (std::int64_t i = 0; i < count; ++i) values[i] = values[i] < 0.0F ? 0.0F : values[i];
}

MUSTER_VECTORISED
void mask(float* __restrict gradient, const float* __restrict output, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) gradient[i] = output[i] > 0.0F ? gradient[i] : 0.0F;
}

}  // namespace

Tensor& Relu::forward(Tensor& input) {
  clamp_negative(input.data(), input.count());
  output_ = &input;
  return input;
}

Tensor& Relu::backward(Tensor& output_gradient, InputGradient /*input_gradient*/) {
  assert(output_ != nullptr && output_->count() == output_gradient.count());
  mask(output_gradient.data(), output_->data(), output_gradient.count());
  return output_gradient;
}

}  // namespace muster::trainers
