#include "trainers/optim/adam.hpp"

#include <cmath>

#include "trainers/tensor/vectorised.hpp"

namespace muster::trainers {
namespace {

/// One step's numbers, the same for every element.
struct AdamCoefficients {
  float beta1;
  float one_minus_beta1;
  float beta2;
  float one_minus_beta2;
  float step_size;             ///< lr / (1 - beta1^t)
  float inverse_root_of_bias;  ///< 1 / sqrt(1 - beta2^t)
  float epsilon;
  float gradient_decay;  ///< Adam's
  float shrink;          ///< AdamW's: 1 - lr * decay
};

MUSTER_VECTORISED
void update_elements(const AdamCoefficients& c, const float* __restrict gradient, float* __restrict value,
                     float* __restrict m, float* __restrict v, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float p = value[i] * c.shrink;
    const float g = gradient[i] + c.gradient_decay * p;
    m[i] = m[i] * c.beta1 + g * c.one_minus_beta1;
    v[i] = v[i] * c.beta2 + g * g * c.one_minus_beta2;
    value[i] = p - c.step_size * m[i] / (std::sqrt(v[i]) * c.inverse_root_of_bias + c.epsilon);
  }
}

}  // namespace

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
  const AdamCoefficients c{
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
    update_elements(c, parameter.gradient.data(), parameter.value.data(), exp_avg_[i].data(),
                    exp_avg_sq_[i].data(), parameter.value.count());
  }
}

}  // namespace muster::trainers
