#include "rendezvous/core/policy.hpp"

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

using namespace std::chrono_literals;

std::string refusal(JobPolicy policy) {
  const auto result = validate(policy);
  return result ? "" : result.error().sentence();
}

TEST(Policy, TheDefaultsAreValid) { EXPECT_EQ(refusal({}), ""); }

TEST(Policy, AMinimumAboveTheMaximumNamesBoth) {
  JobPolicy policy;
  policy.min_nodes = 3;
  policy.max_nodes = 2;
  EXPECT_EQ(refusal(policy), "maximum of nodes: 2 is not within 3 to 100000");
  policy.min_nodes = 0;
  EXPECT_EQ(refusal(policy), "minimum of nodes: 0 is not within 1 to 100000");
}

TEST(Policy, EveryWaitHasALowerAndAnUpperLimit) {
  JobPolicy policy;
  policy.join_deadline = 0s;
  EXPECT_EQ(refusal(policy), "join deadline: 0 s is not within 1 ms and 366 d");
  policy = {};
  policy.last_call = -1s;
  EXPECT_EQ(refusal(policy), "last call: -1 s is not within 0 s and 366 d");
  policy = {};
  policy.stop_deadline = 24h * 400;
  EXPECT_EQ(refusal(policy), "stop deadline: 400 d is not within 1 ms and 366 d");
}

TEST(Policy, AWindowedBudgetNeedsAWindow) {
  JobPolicy policy;
  policy.restart_window = WindowedBudget{3, 0s};
  EXPECT_EQ(refusal(policy), "restart window: 0 s is not within 1 s and 366 d");
}

}  // namespace
}  // namespace muster::rendezvous
