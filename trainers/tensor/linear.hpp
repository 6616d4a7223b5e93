// y = x Wᵀ + b, as torch.nn.Linear: W (out, in), b (out).
#pragma once

#include "trainers/tensor/module.hpp"
#include "trainers/tensor/random.hpp"

namespace muster::trainers {

class Linear final : public Module {
 public:
  /// Initial values as PyTorch draws them by default: W and b uniform in [-1/sqrt(in), 1/sqrt(in)) (what
  /// Kaiming's uniform rule with a = sqrt(5) comes to). W first, row by row, then b.
  Linear(std::int64_t in_features, std::int64_t out_features, Random& random);

  Tensor& forward(Tensor& input) override;
  Tensor& backward(Tensor& output_gradient, InputGradient input_gradient) override;
  std::vector<Parameter*> parameters() override { return {&weight, &bias}; }

  Parameter weight;
  Parameter bias;

 private:
  const Tensor* input_ = nullptr;
  Tensor output_;
  Tensor input_gradient_;
};

}  // namespace muster::trainers
