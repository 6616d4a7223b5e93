#include "muster/worker/environment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>
#include <utility>
#include <vector>

namespace muster::worker {
namespace {

using testing::HasSubstr;
using Variables = std::vector<std::pair<const char*, const char*>>;

class EnvironmentTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name :
         {"RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
          "TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS",
          "TORCHELASTIC_RUN_ID", "TORCHELASTIC_ERROR_FILE", "MUSTER_ROUND", "MUSTER_DEBUG"})
      ::unsetenv(name);
  }

  static Environment read(const Variables& variables) {
    for (auto [name, value] : variables) ::setenv(name, value, 1);
    return Environment::read();
  }

  static std::string refusal(const Variables& variables) {
    try {
      read(variables);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "accepted";
  }
};

TEST_F(EnvironmentTest, WithoutALauncherIsAWorldOfOne) {
  const auto environment = read({});
  EXPECT_EQ(environment.rank, 0);
  EXPECT_EQ(environment.world_size, 1);
  EXPECT_FALSE(environment.agent_store);
  EXPECT_EQ(environment.run_id, "none");
}

TEST_F(EnvironmentTest, ReadsAllOfTorchrunsVariables) {
  const auto environment = read({{"RANK", "5"},
                                 {"LOCAL_RANK", "1"},
                                 {"GROUP_RANK", "2"},
                                 {"WORLD_SIZE", "8"},
                                 {"LOCAL_WORLD_SIZE", "2"},
                                 {"MASTER_ADDR", "fd00::1"},
                                 {"MASTER_PORT", "29400"},
                                 {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                 {"TORCHELASTIC_RESTART_COUNT", "3"},
                                 {"TORCHELASTIC_MAX_RESTARTS", "4"},
                                 {"TORCHELASTIC_RUN_ID", "mnist"},
                                 {"TORCHELASTIC_ERROR_FILE", "/x/error.json"},
                                 {"MUSTER_ROUND", "7"}});
  EXPECT_EQ(environment.rank, 5);
  EXPECT_EQ(environment.local_rank, 1);
  EXPECT_EQ(environment.group_rank, 2);
  EXPECT_EQ(environment.world_size, 8);
  EXPECT_EQ(environment.local_world_size, 2);
  EXPECT_EQ(environment.master_addr, "fd00::1");
  EXPECT_EQ(environment.master_port, 29400);
  EXPECT_TRUE(environment.agent_store);
  EXPECT_EQ(environment.restart_count, 3);
  EXPECT_EQ(environment.max_restarts, 4);
  EXPECT_EQ(environment.run_id, "mnist");
  EXPECT_EQ(environment.error_file, "/x/error.json");
  EXPECT_EQ(environment.round, 7);
}

TEST_F(EnvironmentTest, NamesTheVariableItsValueAndWhatWasExpected) {
  EXPECT_EQ(refusal({{"RANK", "0"}, {"WORLD_SIZE", "two"}}),
            "WORLD_SIZE=two: expected a whole number of at least 1");
  EXPECT_EQ(refusal({{"RANK", "2"}, {"WORLD_SIZE", "2"}}), "RANK=2: expected a whole number from 0 to 1");
  EXPECT_THAT(refusal({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}), HasSubstr("RANK=-1"));
  EXPECT_THAT(refusal({{"RANK", "1"}, {"WORLD_SIZE", "99999999999"}}), HasSubstr("WORLD_SIZE"));
  EXPECT_THAT(refusal({{"RANK", "1"}, {"WORLD_SIZE", ""}}), HasSubstr("WORLD_SIZE is not set"));
}

TEST_F(EnvironmentTest, HalfALauncherIsRefused) {
  EXPECT_THAT(refusal({{"RANK", "0"}}), HasSubstr("WORLD_SIZE is not set"));
}

TEST_F(EnvironmentTest, AWorldOfTwoNeedsTheMastersAddress) {
  EXPECT_THAT(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "1"}}),
              HasSubstr("MASTER_ADDR is not set"));
  EXPECT_THAT(refusal({{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "65536"}}),
              HasSubstr("MASTER_PORT=65536"));
}

TEST_F(EnvironmentTest, DebuggingIsAskedForByWord) {
  EXPECT_FALSE(read({}).debug_collectives);
  EXPECT_FALSE(read({{"MUSTER_DEBUG", ""}}).debug_collectives);
  EXPECT_TRUE(read({{"MUSTER_DEBUG", "collectives"}}).debug_collectives);
  EXPECT_EQ(refusal({{"MUSTER_DEBUG", "collective"}}),
            "MUSTER_DEBUG=collective: expected nothing or collectives");
}

TEST_F(EnvironmentTest, TheAgentStoreFlagIsNotGuessed) {
  EXPECT_FALSE(read({{"TORCHELASTIC_USE_AGENT_STORE", "False"}}).agent_store);
  EXPECT_TRUE(read({{"TORCHELASTIC_USE_AGENT_STORE", "1"}}).agent_store);
  EXPECT_THAT(refusal({{"TORCHELASTIC_USE_AGENT_STORE", "maybe"}}), HasSubstr("True or False"));
}

}  // namespace
}  // namespace muster::worker
