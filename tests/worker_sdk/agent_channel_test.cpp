#include "worker_sdk/src/agent_channel.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

namespace muster::worker {
namespace {

class AgentChannelTest : public testing::Test {
 protected:
  AgentChannelTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    agent = UniqueFd(ends[0]);
    Environment environment;
    environment.round = 4;
    environment.local_rank = 3;
    channel = std::make_unique<AgentChannel>(UniqueFd(ends[1]), environment);
  }

  std::string heard() const {
    std::array<char, 4096> bytes;
    const auto count = ::recv(agent.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    return count > 0 ? std::string(bytes.data(), static_cast<std::size_t>(count)) : "";
  }
  void say(const std::string& text) const {
    EXPECT_EQ(::send(agent.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  }

  UniqueFd agent;
  std::unique_ptr<AgentChannel> channel;
};

TEST_F(AgentChannelTest, SaysHelloFirst) { EXPECT_EQ(heard(), "hello 1 4 3\n"); }

TEST_F(AgentChannelTest, ProgressInEveryStepIsSentNowAndThen) {
  heard();
  for (int step = 1; step <= 1000; ++step) channel->progress(step);
  const std::string text = heard();
  EXPECT_TRUE(text.starts_with("progress 1\n")) << text;
  EXPECT_LT(text.size(), 200u) << text;
}

TEST_F(AgentChannelTest, IsAskedOnceAndRemembersIt) {
  EXPECT_FALSE(channel->asked_to_save());
  say("sa");
  EXPECT_FALSE(channel->asked_to_save());
  say("ve 30000\n");
  EXPECT_TRUE(channel->asked_to_save());
  EXPECT_TRUE(channel->asked_to_save());
  heard();
  channel->safe(812);
  EXPECT_EQ(heard(), "safe 812\n");
}

TEST_F(AgentChannelTest, H3_SaysThatItIsDone) {
  heard();
  channel->done();
  EXPECT_EQ(heard(), "done\n");
}

TEST_F(AgentChannelTest, AnAgentThatIsGoneOrTalksNonsenseOnlyMakesItSilent) {
  say("save x\n");
  EXPECT_FALSE(channel->asked_to_save());
  channel->progress(1);
  agent.reset();
  channel->safe(1);
  EXPECT_FALSE(channel->asked_to_save());
}

}  // namespace
}  // namespace muster::worker
