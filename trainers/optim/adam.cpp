#include "trainers/optim/adam.hpp"

#include <cmath>

namespace muster::trainers {
Adam::Adam(std::vector<Parameter*> parameters, AdamOptions options)
    : Optimizer(std::move(parameters), options.learning_rate),
      options_(options),
      exp_avg_(tensors_like_parameters()),
      exp_avg_sq_(tensors_like_parameters()) {}

std::vector<NamedTensor> Adam::state() {
  std::vector<NamedTensor> all;
  append_state("exp_avg", exp_avg_, all);
  append_state("exp_avg_sq", exp_avg_sq_, all);
  return all;
}

void Adam::update() {
  const auto t = static_cast<double>(steps_taken);
  const bool decoupled = options_.kind == WeightDecay::decoupled;
  const auto single = [](double value) { return static_cast<float>(value); };
  const AdamStep step{
      .beta1 = single(options_.beta1),
      .one_minus_beta1 = single(1 - options_.beta1),
      .beta2 = single(options_.beta2),
      .one_minus_beta2 = single(1 - options_.beta2),
      .step_size = single(learning_rate / (1 - std::pow(options_.beta1, t))),
      .inverse_root_of_bias = single(1 / std::sqrt(1 - std::pow(options_.beta2, t))),
      .epsilon = single(options_.epsilon),
      .gradient_decay = decoupled ? 0.0F : single(options_.weight_decay),
      .shrink = decoupled ? single(1 - learning_rate * options_.weight_decay) : 1.0F,
  };
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    auto& parameter = *parameters_[i];
    parameter.value.device().adam(step, parameter.gradient.data(), parameter.value.data(), exp_avg_[i].data(),
                                  exp_avg_sq_[i].data(), parameter.value.count());
  }
}

}  // namespace muster::trainers
