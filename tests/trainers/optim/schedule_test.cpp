#include "trainers/optim/schedule.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace muster::trainers {
namespace {

TEST(Schedule, WithoutAnythingTheRateStays) {
  for (std::int64_t done : {0, 500, 1000})
    EXPECT_EQ(
        learning_rate_of({.rate = 0.1}, {.samples_done = done, .samples_total = 1000, .global_batch = 10}),
        0.1);
}

TEST(Schedule, ScalesWithTheGlobalBatchOverTheOneItIsMeantFor) {
  const RunProgress four{.samples_done = 0, .samples_total = 1000, .global_batch = 256};
  EXPECT_EQ(learning_rate_of({.rate = 0.1, .scaling = RateScaling::linear, .reference_batch = 64}, four),
            0.4);
  EXPECT_EQ(learning_rate_of({.rate = 0.1, .scaling = RateScaling::square_root, .reference_batch = 64}, four),
            0.2);
  EXPECT_EQ(learning_rate_of({.rate = 0.1, .scaling = RateScaling::none, .reference_batch = 64}, four), 0.1);
}

TEST(Schedule, WarmsUpInEqualSteps) {
  const ScheduleOptions options{.rate = 0.8, .warmup_steps = 4};
  for (std::int64_t step = 0; step < 6; ++step) {
    const double expected = 0.8 * static_cast<double>(std::min<std::int64_t>(step + 1, 4)) / 4;
    EXPECT_DOUBLE_EQ(
        learning_rate_of(options, {.samples_done = step * 10, .samples_total = 1000, .global_batch = 10}),
        expected);
  }
}

TEST(Schedule, CosineFallsFromTheEndOfTheWarmUpToTheEndOfTheRun) {
  const ScheduleOptions options{.rate = 1, .warmup_steps = 10, .decay = RateDecay::cosine};
  const auto at = [&](std::int64_t done) {
    return learning_rate_of(options, {.samples_done = done, .samples_total = 1100, .global_batch = 10});
  };
  EXPECT_DOUBLE_EQ(at(90), 1);
  EXPECT_DOUBLE_EQ(at(100), 1);
  EXPECT_NEAR(at(350), 0.5 * (1 + std::sqrt(0.5)), 1e-12);
  EXPECT_NEAR(at(600), 0.5, 1e-12);
  EXPECT_NEAR(at(1100), 0, 1e-12);
}

TEST(Schedule, AWorldOfAnotherSizeGoesOnWhereTheLastOneWas) {
  const ScheduleOptions options{.rate = 1, .decay = RateDecay::cosine};
  EXPECT_EQ(learning_rate_of(options, {.samples_done = 400, .samples_total = 1000, .global_batch = 10}),
            learning_rate_of(options, {.samples_done = 400, .samples_total = 1000, .global_batch = 40}));
}

}  // namespace
}  // namespace muster::trainers
