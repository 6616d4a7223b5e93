#include "trainers/tensor/relu.hpp"

#include <cassert>

namespace muster::trainers {

Tensor& Relu::forward(Tensor& input) {
  input.device().relu(input.data(), input.count());
  output_ = &input;
  return input;
}

Tensor& Relu::backward(Tensor& output_gradient, InputGradient /*input_gradient*/) {
  assert(output_ != nullptr && output_->count() == output_gradient.count());
  output_gradient.device().relu_gradient(output_gradient.data(), output_->data(), output_gradient.count());
  return output_gradient;
}

}  // namespace muster::trainers
