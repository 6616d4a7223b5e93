#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "trainers/tensor/cross_entropy.hpp"
#include "trainers/tensor/linear.hpp"
#include "trainers/tensor/relu.hpp"
#include "trainers/tensor/sequential.hpp"

namespace muster::trainers {
namespace {

using testing::ElementsAre;

TEST(Linear, InitialValuesFillPyTorchsRange) {
  Random random(5, 0);
  Linear linear(100, 50, random);
  float least = 1;
  float greatest = -1;
  for (float value : linear.weight.value.values()) {
    least = std::min(least, value);
    greatest = std::max(greatest, value);
  }
  EXPECT_GE(least, -0.1F);
  EXPECT_LT(least, -0.099F);
  EXPECT_LE(greatest, 0.1F);
  EXPECT_GT(greatest, 0.099F);
  for (float value : linear.bias.value.values()) EXPECT_LE(std::abs(value), 0.1F);
}

TEST(Sequential, NamesParametersAsPyTorchDoes) {
  auto model = multi_layer_perceptron({4, 3, 2}, 0);
  std::vector<std::string> names;
  for (auto* parameter : model.parameters()) names.push_back(parameter->name);
  EXPECT_THAT(names, ElementsAre("0.weight", "0.bias", "2.weight", "2.bias"));
  EXPECT_EQ(model.parameters()[0]->value.shape(), (Shape{3, 4}));
}

TEST(Sequential, GradientsBecomeReadyInReverseOrderOfUse) {
  auto model = multi_layer_perceptron({4, 3, 2}, 0);
  std::vector<std::string> ready;
  for (auto* parameter : model.parameters()) {
    parameter->on_gradient_ready = [&](Parameter& p) { ready.push_back(p.name); };
  }
  Tensor input({1, 4});
  model.forward(input);
  Tensor gradient({1, 2});
  model.backward(gradient, InputGradient::unwanted);
  EXPECT_THAT(ready, ElementsAre("2.bias", "2.weight", "0.bias", "0.weight"));
}

TEST(Sequential, TheSameSeedGivesTheSameValues) {
  auto a = multi_layer_perceptron({4, 3, 2}, 9);
  auto b = multi_layer_perceptron({4, 3, 2}, 9);
  auto c = multi_layer_perceptron({4, 3, 2}, 10);
  for (std::size_t i = 0; i < 4; ++i) {
    const auto values = a.parameters()[i]->value.values();
    EXPECT_THAT(b.parameters()[i]->value.values(), testing::ElementsAreArray(values));
    EXPECT_THAT(c.parameters()[i]->value.values(), testing::Not(testing::ElementsAreArray(values)));
  }
}

TEST(Relu, KeepsNanAndCutsNegatives) {
  Tensor x({4});
  x.values()[0] = -1;
  x.values()[1] = 2;
  x.values()[3] = std::numeric_limits<float>::quiet_NaN();
  Relu relu;
  relu.forward(x);
  EXPECT_EQ(x.values()[0], 0);
  EXPECT_EQ(x.values()[1], 2);
  EXPECT_TRUE(std::isnan(x.values()[3]));
}

TEST(CrossEntropy, HandComputed) {
  Tensor logits({2, 2});
  logits.values()[0] = std::log(3.0F);  // softmax 3/4, 1/4
  Tensor gradient;
  const std::vector<std::uint8_t> labels = {0, 1};
  EXPECT_NEAR(softmax_cross_entropy(logits, labels, gradient), (std::log(4.0 / 3) + std::log(2.0)) / 2, 1e-6);
  EXPECT_NEAR(gradient.row(0)[0], (0.75 - 1) / 2, 1e-6);
  EXPECT_NEAR(gradient.row(0)[1], 0.25 / 2, 1e-6);
  EXPECT_NEAR(gradient.row(1)[1], (0.5 - 1) / 2, 1e-6);
}

TEST(CrossEntropy, LargeLogitsDoNotOverflow) {
  Tensor logits({1, 2});
  logits.values()[0] = 1000;
  Tensor gradient;
  const std::vector<std::uint8_t> labels = {1};
  EXPECT_NEAR(softmax_cross_entropy(logits, labels, gradient), 1000, 1e-3);
  EXPECT_NEAR(gradient.values()[0], 1, 1e-6);
}

TEST(CrossEntropy, CountsTheFirstGreatest) {
  Tensor logits({2, 3});
  logits.row(1)[2] = 1;
  EXPECT_EQ(count_correct(logits, std::vector<std::uint8_t>{0, 2}), 2);
  EXPECT_EQ(count_correct(logits, std::vector<std::uint8_t>{1, 1}), 0);
}

}  // namespace
}  // namespace muster::trainers
