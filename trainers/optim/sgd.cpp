#include "trainers/optim/sgd.hpp"

#include "trainers/tensor/vectorised.hpp"

namespace muster::trainers {
namespace {

MUSTER_VECTORISED
void update_plain(float lr, float decay, const float* __restrict gradient, float* __restrict value,
                  std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) value[i] -= lr * (gradient[i] + decay * value[i]);
}

struct SgdCoefficients {
  float lr;
  float decay;
  float momentum;
};

MUSTER_VECTORISED
void update_with_momentum(const SgdCoefficients& c, const float* __restrict gradient, float* __restrict value,
                          float* __restrict buffer, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    buffer[i] = c.momentum * buffer[i] + (gradient[i] + c.decay * value[i]);
    value[i] -= c.lr * buffer[i];
  }
}

}  // namespace

Sgd::Sgd(std::vector<Parameter*> parameters, SgdOptions options)
    : Optimizer(std::move(parameters), options.learning_rate), options_(options) {
  if (options_.momentum != 0) momentum_ = tensors_like_parameters();
}

std::vector<NamedTensor> Sgd::state() {
  std::vector<NamedTensor> all;
  append_state("momentum_buffer", momentum_, all);
  return all;
}

void Sgd::update() {
  const SgdCoefficients c{.lr = static_cast<float>(learning_rate),
                          .decay = static_cast<float>(options_.weight_decay),
                          .momentum = static_cast<float>(options_.momentum)};
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    auto& parameter = *parameters_[i];
    const auto* gradient = parameter.gradient.data();
    if (momentum_.empty()) {
      update_plain(c.lr, c.decay, gradient, parameter.value.data(), parameter.value.count());
    } else {
      update_with_momentum(c, gradient, parameter.value.data(), momentum_[i].data(), parameter.value.count());
    }
  }
}

}  // namespace muster::trainers
