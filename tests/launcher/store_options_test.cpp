#include "launcher/store_options.hpp"

#include <gmock/gmock.h>

#include "launcher/options.hpp"
#include "tests/launcher/environment_of.hpp"

namespace muster::launcher {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Result<LauncherOptions> parse(std::vector<std::string> words) {
  words.insert(words.end(), {"prog"});
  return parse_command_line(words, environment_of({}));
}

TEST(StoreOptions, TheAgentServesAtAnyPortUnlessItIsSaidOtherwise) {
  const auto options = parse({"--standalone"});
  ASSERT_TRUE(options);
  EXPECT_FALSE(options->store.in_rank_zero);
  EXPECT_TRUE(options->store.ports.any());
  EXPECT_EQ(options->store.stall_after, std::chrono::seconds(60));
}

TEST(RestartWindow, OneNodeUnderstandsItAsManyDo) {
  const std::string conf = "--rdzv-conf=restart_window=3/10m";
  for (const auto& words : {std::vector<std::string>{"--standalone", conf},
                            std::vector<std::string>{"--nnodes=2", "--rdzv-endpoint=n1", conf}}) {
    const auto options = parse(words);
    ASSERT_TRUE(options);
    EXPECT_EQ(options->restart_window, (rendezvous::WindowedBudget{3, std::chrono::minutes(10)}));
    EXPECT_THAT(options->without_effect, IsEmpty());
  }
  EXPECT_EQ(parse({"--standalone"})->restart_window, std::nullopt);
  for (const std::string wrong : {"3", "0/10m", "-1/10m", "3/0", "3/soon", "many/10m"}) {
    const auto refused = parse({"--standalone", "--rdzv-conf=restart_window=" + wrong});
    ASSERT_FALSE(refused) << wrong;
    EXPECT_EQ(refused.error().sentence(), "--rdzv-conf restart_window: '" + wrong +
                                              "' is not allowed; it takes NUMBER/TIME, as in 3/10m");
  }
}

TEST(StoreOptions, C9_C10_I10_OneNodeUnderstandsThemAsManyDo) {
  const std::string conf = "--rdzv-conf=worker_store=rank0,store_port=30000-30009,stall_after=5m";
  for (const auto& words : {std::vector<std::string>{"--standalone", conf},
                            std::vector<std::string>{"--nnodes=2", "--rdzv-endpoint=n1", conf}}) {
    const auto options = parse(words);
    ASSERT_TRUE(options);
    EXPECT_TRUE(options->store.in_rank_zero);
    EXPECT_EQ(options->store.ports, (PortRange{30000, 30009}));
    EXPECT_EQ(options->store.stall_after, std::chrono::minutes(5));
    if (options->meeting) {
      EXPECT_THAT(options->meeting->unknown_keys, IsEmpty());
    }
  }
}

TEST(StoreOptions, WhatIsNotAllowedIsNamed) {
  const std::pair<const char*, const char*> wrong[] = {
      {"worker_store=node0", "--rdzv-conf worker_store: 'node0' is not allowed; it takes agent or rank0"},
      {"store_port=0",
       "--rdzv-conf store_port: '0' is not allowed; it takes a port from 1 to 65535, or FIRST-LAST"},
      {"stall_after=soon", "--rdzv-conf stall_after: 'soon' is not allowed; it takes seconds"}};
  for (const auto& [conf, sentence] : wrong) {
    const auto options = parse({"--standalone", std::string("--rdzv-conf=") + conf});
    ASSERT_FALSE(options) << conf;
    EXPECT_THAT(options.error().sentence(), HasSubstr(sentence));
  }
}

}  // namespace
}  // namespace muster::launcher
