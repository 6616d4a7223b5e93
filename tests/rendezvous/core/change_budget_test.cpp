#include "rendezvous/core/change_budget.hpp"

#include <gtest/gtest.h>

#include "rendezvous/core/settle.hpp"

namespace muster::rendezvous {
namespace {

using namespace std::chrono_literals;

constexpr Instant start = Instant(24h);

TEST(ChangeBudget, D12_GrowthWaitsUntilTheOldestChangeLeavesTheWindow) {
  ChangeBudget budget{JobPolicy{}};
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(budget.growth_allowed_at(start), start);
    budget.record(start + i * 1min);
  }
  const Instant now = start + 20min;
  EXPECT_EQ(budget.used(now), 10);
  EXPECT_EQ(budget.growth_allowed_at(now), start + 1h);
  EXPECT_EQ(budget.growth_allowed_at(start + 1h), start + 1h);
}

TEST(ChangeBudget, ABudgetOfNoneNeverAllowsGrowth) {
  JobPolicy policy;
  policy.membership_changes.count = 0;
  ChangeBudget budget(policy);
  budget.record(start);
  EXPECT_EQ(budget.growth_allowed_at(start), Instant::max());
}

TEST(ChangeBudget, WithoutALimitGrowthIsDampedAndNeverPutOff) {
  JobPolicy policy;
  policy.membership_changes.count = unlimited;
  ChangeBudget budget(policy);
  for (int i = 0; i < 1000; ++i) budget.record(start);
  EXPECT_EQ(budget.growth_allowed_at(start), start);
  EXPECT_EQ(budget.settle_window(start), 60s);
  EXPECT_EQ(budget.settle_window(start + 2h), 500ms);
  EXPECT_LT(budget.state().size(), 100u) << "what is kept has a bound";
}

TEST(ChangeBudget, TheFirstThreeChangesAreUndampedThenTheWindowDoublesUpToItsCap) {
  ChangeBudget budget{JobPolicy{}};
  for (const Duration window : {500ms, 500ms, 500ms, 500ms, 1000ms, 2000ms}) {
    EXPECT_EQ(budget.settle_window(start), window);
    budget.record(start);
  }
  for (int i = 0; i < 4; ++i) budget.record(start);
  EXPECT_EQ(budget.settle_window(start), 60s);
  EXPECT_EQ(budget.settle_window(start + 2h), 500ms);
}

TEST(Settle, M7_ChangesCloseTogetherAreOneButAStreamHoldsNothingBackForLong) {
  Settle settle;
  EXPECT_FALSE(settle.at(500ms, 5s));
  settle.note(start);
  settle.note(start + 300ms);
  EXPECT_EQ(settle.at(500ms, 5s), start + 800ms);
  for (int i = 1; i < 100; ++i) settle.note(start + i * 300ms);
  EXPECT_EQ(settle.at(500ms, 5s), start + 5s);
}

}  // namespace
}  // namespace muster::rendezvous
