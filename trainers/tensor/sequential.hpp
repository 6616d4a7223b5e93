// A chain of modules. Parameters are named by their module's place, as torch.nn.Sequential names them:
// "0.weight", "0.bias", "2.weight", ...
#pragma once

#include <memory>

#include "trainers/tensor/module.hpp"

namespace muster::trainers {

class Sequential final : public Module {
 public:
  explicit Sequential(std::vector<std::unique_ptr<Module>> modules);

  Tensor& forward(Tensor& input) override;
  Tensor& backward(Tensor& output_gradient, InputGradient input_gradient) override;
  std::vector<Parameter*> parameters() override;

  std::size_t size() const { return modules_.size(); }
  Module& at(std::size_t place) { return *modules_.at(place); }

 private:
  std::vector<std::unique_ptr<Module>> modules_;
};

/// Linear layers of these widths with a ReLU between each two: {784, 256, 10} is the articles' model.
/// The initial values depend on the seed and the widths alone.
Sequential multi_layer_perceptron(const std::vector<std::int64_t>& widths, std::uint64_t seed);

}  // namespace muster::trainers
