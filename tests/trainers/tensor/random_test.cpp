#include "trainers/tensor/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace muster::trainers {
namespace {

/// Computed by another program from SplitMix64's definition. A change of the generator would silently change
/// every run's initial parameters.
TEST(Random, ValuesArePinned) {
  Random random(7, 3);
  const std::array<std::uint64_t, 3> expected = {0xD183B16C6B012BD8, 0x21379A38D520D44D, 0xF2FDA9D5C4322F3D};
  for (auto value : expected) EXPECT_EQ(random.next(), value);
}

TEST(Random, StreamsAndSeedsDiffer) {
  EXPECT_NE(Random(1, 0).next(), Random(1, 1).next());
  EXPECT_NE(Random(1, 0).next(), Random(2, 0).next());
  EXPECT_EQ(Random(1, 5).next(), Random(1, 5).next());
}

TEST(Random, BelowIsInRangeAndReachesEveryValue) {
  Random random(1, 1);
  std::array<int, 7> seen{};
  for (int i = 0; i < 7000; ++i) ++seen.at(random.below(7));
  EXPECT_GT(*std::min_element(seen.begin(), seen.end()), 800);
  EXPECT_EQ(random.below(1), 0U);
}

TEST(Random, UniformHasItsBoundsAndMean) {
  Random random(1, 2);
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const float value = random.uniform(-0.5F, 0.5F);
    ASSERT_GE(value, -0.5F);
    ASSERT_LT(value, 0.5F);
    sum += value;
  }
  EXPECT_NEAR(sum / 10000, 0, 0.02);
}

TEST(Random, EachRankHasAStreamOfItsOwnAndOneInCommon) {
  EXPECT_EQ(Random::of_rank(3, 1).next(), Random::of_rank(3, 1).next());
  EXPECT_NE(Random::of_rank(3, 1).next(), Random::of_rank(3, 2).next());
  for (std::uint64_t stream : {0, 1, 2}) EXPECT_NE(Random::of_rank(3, 0).next(), Random(3, stream).next());
}

}  // namespace
}  // namespace muster::trainers
