#include "agent/logs/line_prefix.hpp"

#include <gtest/gtest.h>

namespace muster::agent {
namespace {

WorkerName somebody() {
  WorkerName name;
  name.job = "mnist";
  name.node = "n1";
  name.host = "gpu7";
  name.role = "default";
  name.rank = "5";
  name.local_rank = "1";
  name.round = 2;
  name.attempt = 1;
  return name;
}

std::string rendered(std::string_view text) {
  std::string block;
  LinePrefix(text, somebody()).append_to(block, "14:03:11.482");
  return block;
}

TEST(LinePrefix, TakesTorchrunsFields) {
  EXPECT_EQ(rendered(kTorchrunPrefix), "[default1]:");
  EXPECT_EQ(rendered("[rank${rank}]: "), "[rank5]: ");
  EXPECT_EQ(rendered("${hostname} $role_name $unknown "), "gpu7 default $unknown ");
}

TEST(LinePrefix, J2_KnowsNodeRoundAndTime) {
  EXPECT_EQ(rendered("{host}:{rank}: "), "gpu7:5: ");
  EXPECT_EQ(rendered("{time} {job}/{node} r{round} a{attempt} {local_rank}|{time}"),
            "14:03:11.482 mnist/n1 r2 a1 1|14:03:11.482");
  EXPECT_TRUE(LinePrefix("{time}", {}).has_time());
  EXPECT_FALSE(LinePrefix("{rank}", {}).has_time());
}

TEST(LinePrefix, J5_MayBeEmpty) {
  EXPECT_TRUE(LinePrefix().empty());
  EXPECT_TRUE(LinePrefix("", {}).empty());
  EXPECT_FALSE(LinePrefix("{time}", {}).empty());
  EXPECT_EQ(rendered(""), "");
}

}  // namespace
}  // namespace muster::agent
