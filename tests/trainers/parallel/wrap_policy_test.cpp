#include "trainers/parallel/wrap_policy.hpp"

#include <gtest/gtest.h>

#include <string>

namespace muster::trainers {
namespace {

/// "0-1 2 3-5": first and last layer of each unit.
std::string planned(const std::vector<std::int64_t>& layers, std::int64_t min_num_params) {
  std::string text;
  for (const auto& unit : plan_units(layers, min_num_params)) {
    if (!text.empty()) text += " ";
    text += std::to_string(unit.first);
    if (unit.count > 1) text += "-" + std::to_string(unit.first + unit.count - 1);
  }
  return text;
}

TEST(WrapPolicy, ALargeLayerIsAUnitWithTheLayerWithoutParametersBehindIt) {
  EXPECT_EQ(planned({10, 0, 10, 0, 10}, 10), "0-1 2-3 4");
  EXPECT_EQ(planned({10, 0, 10, 0, 10}, 1), "0-1 2-3 4");
}

TEST(WrapPolicy, SmallLayersAreCollectedUntilTheyAreEnough) {
  EXPECT_EQ(planned({4, 0, 4, 0, 4, 0, 4}, 8), "0-3 4-6");
  EXPECT_EQ(planned({4, 0, 4, 0, 4}, 8), "0-3 4") << "what is left is a unit of its own";
  EXPECT_EQ(planned({4, 0, 4, 0, 4}, 1000), "0-4");
}

TEST(WrapPolicy, LeadingLayersWithoutParametersJoinTheFirstUnit) {
  EXPECT_EQ(planned({0, 0, 5, 0, 5}, 1), "0-3 4");
}

TEST(WrapPolicy, TheArticlesModel) {
  const std::int64_t hidden = 2048 * 2048 + 2048;
  const std::vector<std::int64_t> layers = {
      784 * 2048 + 2048, 0, hidden, 0, hidden, 0, hidden, 0, hidden, 0, hidden, 0, hidden, 0, 2048 * 10 + 10};
  EXPECT_EQ(planned(layers, 1'000'000), "0-1 2-3 4-5 6-7 8-9 10-11 12-13 14");
}

}  // namespace
}  // namespace muster::trainers
