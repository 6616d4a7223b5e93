#include "trainers/tensor/sequential.hpp"

#include "trainers/tensor/linear.hpp"
#include "trainers/tensor/relu.hpp"

namespace muster::trainers {

Sequential::Sequential(std::vector<std::unique_ptr<Module>> modules) : modules_(std::move(modules)) {
  for (std::size_t i = 0; i < modules_.size(); ++i) {
    for (auto* parameter : modules_[i]->parameters()) {
      parameter->name = std::to_string(i) + "." + parameter->name;
    }
  }
}

Tensor& Sequential::forward(Tensor& input) {
  Tensor* flowing = &input;
  for (auto& module : modules_) flowing = &module->forward(*flowing);
  return *flowing;
}

Tensor& Sequential::backward(Tensor& output_gradient, InputGradient input_gradient) {
  Tensor* flowing = &output_gradient;
  for (std::size_t i = modules_.size(); i-- > 0;) {
    flowing = &modules_[i]->backward(*flowing, i == 0 ? input_gradient : InputGradient::wanted);
  }
  return *flowing;
}

std::vector<Parameter*> Sequential::parameters() {
  std::vector<Parameter*> all;
  for (auto& module : modules_) {
    const auto own = module->parameters();
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

Sequential multi_layer_perceptron(const std::vector<std::int64_t>& widths, std::uint64_t seed) {
  std::vector<std::unique_ptr<Module>> modules;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    if (i > 0) modules.push_back(std::make_unique<Relu>());
    Random random(seed, i);  // a stream for each layer
    modules.push_back(std::make_unique<Linear>(widths[i], widths[i + 1], random));
  }
  return Sequential(std::move(modules));
}

}  // namespace muster::trainers
