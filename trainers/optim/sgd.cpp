#include "trainers/optim/sgd.hpp"

namespace muster::trainers {
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
  const SgdStep step{.rate = static_cast<float>(learning_rate),
                     .decay = static_cast<float>(options_.weight_decay),
                     .momentum = static_cast<float>(options_.momentum)};
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    auto& value = parameters_[i]->value;
    const auto* gradient = parameters_[i]->gradient.data();
    if (momentum_.empty()) {
      value.device().sgd(step, gradient, value.data(), value.count());
    } else {
      value.device().sgd_with_momentum(step, gradient, value.data(), momentum_[i].data(), value.count());
    }
  }
}

}  // namespace muster::trainers
