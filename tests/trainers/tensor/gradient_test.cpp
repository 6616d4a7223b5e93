// Every layer's backward against finite differences of its forward, parameter by parameter and for the input.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "trainers/tensor/cross_entropy.hpp"
#include "trainers/tensor/linear.hpp"
#include "trainers/tensor/relu.hpp"
#include "trainers/tensor/sequential.hpp"

namespace muster::trainers {
namespace {

Tensor random_tensor(Shape shape, std::uint64_t seed) {
  Tensor tensor(std::move(shape));
  Random random(seed, 0);
  // Away from 0, where a ReLU has no derivative.
  for (auto& value : tensor.values()) {
    value = random.uniform(0.1F, 1.0F) * (random.below(2) == 0 ? -1.0F : 1.0F);
  }
  return tensor;
}

double weighted_sum(const Tensor& output, const Tensor& weights) {
  double sum = 0;
  for (std::size_t i = 0; i < output.values().size(); ++i) {
    sum += static_cast<double>(output.values()[i]) * weights.values()[i];
  }
  return sum;
}

/// `loss` must be the function whose derivative by `at` is `gradient`.
void expect_gradient(Tensor& at, const Tensor& gradient, const std::function<double()>& loss) {
  constexpr float kStep = 1e-2F;
  for (std::size_t i = 0; i < at.values().size(); ++i) {
    const float before = at.values()[i];
    at.values()[i] = before + kStep;
    const double above = loss();
    at.values()[i] = before - kStep;
    const double below = loss();
    at.values()[i] = before;
    const double slope = (above - below) / (2.0 * kStep);
    ASSERT_NEAR(gradient.values()[i], slope, 2e-3 + 2e-3 * std::abs(slope)) << "element " << i;
  }
}

/// The loss is a weighted sum of the module's outputs, so the output's gradient is the weights.
void check_module(Module& module, const Shape& input_shape, const Shape& output_shape) {
  Tensor input = random_tensor(input_shape, 11);
  const Tensor weights = random_tensor(output_shape, 12);
  const auto loss = [&] {
    Tensor copy = input.clone();  // a module may work in its input
    return weighted_sum(module.forward(copy), weights);
  };
  Tensor fed = input.clone();
  module.forward(fed);
  Tensor output_gradient = weights.clone();
  const Tensor input_gradient = module.backward(output_gradient, InputGradient::wanted).clone();
  std::vector<Tensor> parameter_gradients;
  for (auto* parameter : module.parameters()) parameter_gradients.push_back(parameter->gradient.clone());

  expect_gradient(input, input_gradient, loss);
  std::size_t i = 0;
  for (auto* parameter : module.parameters()) {
    SCOPED_TRACE(parameter->name);
    expect_gradient(parameter->value, parameter_gradients[i++], loss);
  }
}

TEST(Gradient, Linear) {
  Random random(1, 0);
  Linear linear(6, 4, random);
  check_module(linear, {3, 6}, {3, 4});
}

TEST(Gradient, Relu) {
  Relu relu;
  check_module(relu, {3, 6}, {3, 6});
}

TEST(Gradient, Sequential) {
  auto model = multi_layer_perceptron({5, 7, 6, 3}, 4);
  check_module(model, {2, 5}, {2, 3});
}

TEST(Gradient, SoftmaxCrossEntropy) {
  Tensor logits = random_tensor({4, 5}, 3);
  const std::vector<std::uint8_t> labels = {0, 4, 2, 2};
  Tensor gradient;
  Tensor ignored;
  softmax_cross_entropy(logits, labels, gradient);
  expect_gradient(logits, gradient, [&] { return softmax_cross_entropy(logits, labels, ignored); });
}

}  // namespace
}  // namespace muster::trainers
