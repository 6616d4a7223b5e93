// One element, two steps, against values computed by hand from the formulas in the headers.
#include <gtest/gtest.h>

#include <cmath>

#include "trainers/optim/adam.hpp"
#include "trainers/optim/sgd.hpp"

namespace muster::trainers {
namespace {

class OptimizerTest : public testing::Test {
 protected:
  OptimizerTest() { value() = 1; }
  float& value() { return parameter_.value.values()[0]; }
  void step(Optimizer& optimizer, float gradient) {
    parameter_.gradient.values()[0] = gradient;
    optimizer.step();
  }
  Parameter parameter_{"w", {1}};
};

TEST_F(OptimizerTest, SgdPlain) {
  Sgd sgd({&parameter_}, {.learning_rate = 0.1});
  step(sgd, 2);
  EXPECT_FLOAT_EQ(value(), 0.8F);
  EXPECT_TRUE(sgd.state().empty());
}

TEST_F(OptimizerTest, SgdWithMomentumAndDecay) {
  Sgd sgd({&parameter_}, {.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.5});
  step(sgd, 2);  // b = 2 + 0.5; p = 1 - 0.25
  EXPECT_FLOAT_EQ(value(), 0.75F);
  step(sgd, 1);  // b = 0.9 * 2.5 + 1 + 0.375 = 3.625
  EXPECT_FLOAT_EQ(value(), 0.75F - 0.3625F);
  ASSERT_EQ(sgd.state().size(), 1U);
  EXPECT_EQ(sgd.state()[0].name, "momentum_buffer.w");
  EXPECT_FLOAT_EQ(sgd.state()[0].tensor->values()[0], 3.625F);
}

TEST_F(OptimizerTest, AdamFirstStepIsTheLearningRateWhateverTheScale) {
  Adam adam({&parameter_}, {.learning_rate = 0.01});
  step(adam, 1000);
  EXPECT_NEAR(value(), 0.99, 1e-7);
}

TEST_F(OptimizerTest, AdamTwoSteps) {
  Adam adam({&parameter_}, {.learning_rate = 0.1, .beta1 = 0.5, .beta2 = 0.75, .epsilon = 0.5});
  step(adam, 2);  // m = 1, v = 1; m^ = 2, v^ = 4: p = 1 - 0.1 * 2 / 2.5
  EXPECT_NEAR(value(), 0.92, 1e-6);
  step(adam, -1);  // m = 0, v = 1
  EXPECT_NEAR(value(), 0.92, 1e-6);
  step(adam, 1);  // m = 0.5, v = 1; m^ = 0.5 / 0.875, v^ = 1 / 0.578125
  EXPECT_NEAR(value(), 0.92 - 0.1 * (0.5 / 0.875) / (std::sqrt(1 / 0.578125) + 0.5), 1e-6);
  ASSERT_EQ(adam.state().size(), 2U);
  EXPECT_EQ(adam.state()[0].name, "exp_avg.w");
  EXPECT_EQ(adam.state()[1].name, "exp_avg_sq.w");
  EXPECT_EQ(adam.steps_taken, 3);
}

TEST_F(OptimizerTest, WeightDecayInTheGradientOrDecoupled) {
  Adam adam({&parameter_}, {.learning_rate = 0.1, .weight_decay = 0.5});
  step(adam, 0);  // the gradient is 0.5, and the first step is the learning rate
  EXPECT_NEAR(value(), 0.9, 1e-6);

  value() = 1;
  Adam adamw({&parameter_}, {.learning_rate = 0.1, .weight_decay = 0.5, .kind = WeightDecay::decoupled});
  step(adamw, 0);
  EXPECT_NEAR(value(), 0.95, 1e-6);
}

TEST_F(OptimizerTest, TheLearningRateMayChangeBetweenSteps) {
  Sgd sgd({&parameter_}, {.learning_rate = 0.1});
  sgd.learning_rate = 0.5;
  step(sgd, 1);
  EXPECT_FLOAT_EQ(value(), 0.5F);
}

}  // namespace
}  // namespace muster::trainers
