// Adam (Kingma and Ba, "Adam: a method for stochastic optimization", 2015) and AdamW (Loshchilov and Hutter,
// "Decoupled weight decay regularization", 2019), with the bias correction where PyTorch has it:
//
//   m = b1 m + (1 - b1) g            v = b2 v + (1 - b2) g²
//   p = p - lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps)
//
// Weight decay: Adam adds decay * p to the gradient; AdamW shrinks p by lr * decay first.
#pragma once

#include "trainers/optim/optimizer.hpp"

namespace muster::trainers {

enum class WeightDecay : std::uint8_t {
  in_gradient,  ///< Adam
  decoupled     ///< AdamW
};

struct AdamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;  ///< PyTorch's AdamW has 0.01 by default
  WeightDecay kind = WeightDecay::in_gradient;
};

class Adam final : public Optimizer {
 public:
  Adam(std::vector<Parameter*> parameters, AdamOptions options = {});
  /// "exp_avg.*" (m) and "exp_avg_sq.*" (v).
  std::vector<NamedTensor> state() override;

 private:
  void update() override;

  AdamOptions options_;
  std::vector<Tensor> exp_avg_;
  std::vector<Tensor> exp_avg_sq_;
};

}  // namespace muster::trainers
