// Stochastic gradient descent with momentum, as torch.optim.SGD (no dampening, not Nesterov's):
//
//   b = momentum b + g + decay p         p = p - lr b
#pragma once

#include "trainers/optim/optimizer.hpp"

namespace muster::trainers {

struct SgdOptions {
  double learning_rate = 1e-2;
  double momentum = 0;
  double weight_decay = 0;
};

class Sgd final : public Optimizer {
 public:
  Sgd(std::vector<Parameter*> parameters, SgdOptions options = {});
  /// "momentum_buffer.*"; nothing without momentum.
  std::vector<NamedTensor> state() override;

 private:
  void update() override;

  SgdOptions options_;
  std::vector<Tensor> momentum_;
};

}  // namespace muster::trainers
