// y = max(x, 0). Both directions work in the tensor they are given.
#pragma once

#include "trainers/tensor/module.hpp"

namespace muster::trainers {

class Relu final : public Module {
 public:
  Tensor& forward(Tensor& input) override;
  /// The gradient at 0 is 0, as in PyTorch.
  Tensor& backward(Tensor& output_gradient, InputGradient input_gradient) override;

 private:
  const Tensor* output_ = nullptr;
};

}  // namespace muster::trainers
