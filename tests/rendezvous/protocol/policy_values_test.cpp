#include "rendezvous/protocol/policy_values.hpp"

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

JobPolicy unusual() {
  JobPolicy policy;
  policy.min_nodes = 2;
  policy.max_nodes = 4;
  policy.max_restarts = 3;
  policy.restart_window = WindowedBudget{2, seconds(60)};
  policy.last_call = milliseconds(1500);
  policy.exit_barrier_limit = seconds(10);
  policy.membership_changes.count = unlimited;
  policy.first_step_timeout = seconds(0);
  policy.allow_chaos = true;
  return policy;
}

TEST(PolicyValues, ComeBackEqual) {
  for (const auto& policy : {JobPolicy{}, unusual()}) {
    const auto back = policy_from_values(policy_values(policy));
    ASSERT_TRUE(back) << back.error().sentence();
    EXPECT_EQ(*back, policy);
  }
}

TEST(PolicyValues, WhatIsMissingKeepsItsDefault) { EXPECT_EQ(*policy_from_values({}), JobPolicy{}); }

TEST(PolicyValues, WhatCannotBeReadIsNamed) {
  const PolicyValue bad[] = {{"max restarts", "many"},
                             {"last call", "5"},
                             {"last call", "-5 s"},
                             {"last call", "5 m"},
                             {"last call", "9999999999999 s"},
                             {"restart window", "3"},
                             {"max restarts", "-1"},
                             {"restart window", "x per 5 s"},
                             {"allow_chaos", "1"}};
  for (const auto& value : bad) {
    const auto policy = policy_from_values({value});
    ASSERT_FALSE(policy) << value.value;
    EXPECT_NE(policy.error().sentence().find(value.name), std::string::npos) << policy.error().sentence();
  }
  EXPECT_FALSE(policy_from_values({{"colour", "blue"}}));
  EXPECT_FALSE(policy_from_values({{"max restarts", "1"}, {"max restarts", "2"}}));
}

TEST(PolicyValues, DifferencesNameBothValues) {
  EXPECT_EQ(differences(policy_values(unusual()), policy_values(unusual())), "");
  auto other = unusual();
  other.max_nodes = 5;
  other.last_call = seconds(2);
  EXPECT_EQ(differences(policy_values(unusual()), policy_values(other)),
            "maximum of nodes is 4 in the job and 5 on this node; "
            "last call is 1500 ms in the job and 2 s on this node");
  auto harmless = unusual();
  harmless.allow_chaos = false;
  EXPECT_EQ(differences(policy_values(unusual()), policy_values(harmless)),
            "allow_chaos is true in the job and false on this node");
  EXPECT_EQ(differences({}, {{"a", "1"}}), "a is not given in the job and 1 on this node");
  EXPECT_EQ(differences({{"a", "1"}}, {}), "a is 1 in the job and not given on this node");
}

}  // namespace
}  // namespace muster::rendezvous
