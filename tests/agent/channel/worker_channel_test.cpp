#include "agent/channel/worker_channel.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/write.hpp>

#include "tests/support/without_descriptors.hpp"

namespace muster::agent {
namespace {

using namespace std::chrono_literals;
using Protocol = boost::asio::local::stream_protocol;
using testing::ElementsAre;

std::string described(const Event& event) {
  if (const auto* e = std::get_if<WorkerListens>(&event)) return "listens " + std::to_string(e->local_rank);
  if (const auto* e = std::get_if<WorkerDeaf>(&event)) return "deaf " + std::to_string(e->local_rank);
  if (const auto* e = std::get_if<WorkerProgress>(&event))
    return "progress " + std::to_string(e->local_rank) + " " + std::to_string(e->step);
  if (const auto* e = std::get_if<WorkerSafe>(&event))
    return "safe " + std::to_string(e->local_rank) + " " + std::to_string(e->step);
  if (const auto* e = std::get_if<WorkerDone>(&event)) return "done " + std::to_string(e->local_rank);
  return "another event";
}

class WorkerChannelTest : public testing::Test {
 protected:
  WorkerChannelTest() {
    auto emit = [this](const Event& event) { events.push_back(described(event)); };
    channel = WorkerChannel::open(io.get_executor(), emit).value();
    channel->start_round(2, 2);
  }

  struct Peer {
    Peer(boost::asio::io_context& io, const std::string& name) : socket(io) {
      socket.connect(Protocol::endpoint('\0' + name.substr(1)));
    }
    void say(const std::string& text) { boost::asio::write(socket, boost::asio::buffer(text)); }
    Protocol::socket socket;
  };

  Peer connect() { return {io, channel->name()}; }

  template <class Condition>
  bool comes_true(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (!condition() && std::chrono::steady_clock::now() < deadline) io.run_one_for(10ms);
    return condition();
  }

  /// The agent closed its end.
  bool is_cut_off(Peer& peer) {
    peer.socket.non_blocking(true);
    return comes_true([&] {
      boost::system::error_code error;
      std::array<char, 64> bytes;
      peer.socket.read_some(boost::asio::buffer(bytes), error);
      return error && error != boost::asio::error::would_block;
    });
  }

  boost::asio::io_context io;
  std::vector<std::string> events;
  std::unique_ptr<WorkerChannel> channel;
};

TEST_F(WorkerChannelTest, AWorkerListensTellsItsStepsAndSaves) {
  auto worker = connect();
  worker.say("hello 1 2 1\nprogress 7\n");
  ASSERT_TRUE(comes_true([&] { return events.size() == 2; }));
  channel->ask_to_save(1, 1500ms);
  channel->ask_to_save(0, 1s);  // nobody is there
  std::string heard(10, ' ');
  std::size_t count = 0;
  worker.socket.non_blocking(true);
  ASSERT_TRUE(comes_true([&] {
    boost::system::error_code error;
    count += worker.socket.read_some(boost::asio::buffer(heard.data() + count, heard.size() - count), error);
    return count == heard.size();
  }));
  EXPECT_EQ(heard, "save 1500\n");
  worker.say("safe 8\n");
  worker.socket.close();
  EXPECT_TRUE(comes_true([&] { return events.size() == 4; }));
  EXPECT_THAT(events, ElementsAre("listens 1", "progress 1 7", "safe 1 8", "deaf 1"));
}

TEST_F(WorkerChannelTest, WhoIsNotOfThisRoundOrSaysNonsenseIsCutOff) {
  const std::string endless(100, 'x');
  for (const std::string& text :
       {std::string("hello 1 1 0\n"), std::string("hello 2 2 0\n"), std::string("hello 1 2 2\n"),
        std::string("progress 5\n"), endless, std::string("hello 1 2 0\nhello 1 2 1\n"),
        std::string("hello 1 2 0\nprogress -5\n")}) {
    SCOPED_TRACE(text);
    auto stranger = connect();
    stranger.say(text);
    EXPECT_TRUE(is_cut_off(stranger));
  }
  EXPECT_THAT(events, testing::Each(testing::AnyOf("listens 0", "deaf 0")));
}

TEST_F(WorkerChannelTest, TheNewestConnectionOfARankCounts) {
  auto first = connect();
  first.say("hello 1 2 0\n");
  ASSERT_TRUE(comes_true([&] { return events.size() == 1; }));
  auto second = connect();
  second.say("hello 1 2 0\nprogress 3\n");
  ASSERT_TRUE(comes_true([&] { return events.size() == 3; }));
  first.socket.close();
  second.say("progress 4\n");
  ASSERT_TRUE(comes_true([&] { return events.size() == 4; }));
  EXPECT_THAT(events, ElementsAre("listens 0", "listens 0", "progress 0 3", "progress 0 4"));
}

TEST_F(WorkerChannelTest, ANewRoundHearsNobodyOfTheOldOne) {
  auto worker = connect();
  worker.say("hello 1 2 0\n");
  ASSERT_TRUE(comes_true([&] { return events.size() == 1; }));
  channel->start_round(3, 2);
  EXPECT_TRUE(is_cut_off(worker));
  EXPECT_THAT(events, ElementsAre("listens 0"));
}

TEST_F(WorkerChannelTest, H3_WhatAProcessSaidBeforeItsEndIsHeardBeforeItsEnd) {
  {
    auto worker = connect();
    worker.say("hello 1 2 1\nprogress 9\ndone\n");
  }
  auto other = connect();
  other.say("hello 1 2 0\n");
  channel->hear_last_words(1);  // without the executor having had its turn
  EXPECT_THAT(events,
              testing::UnorderedElementsAre("listens 1", "progress 1 9", "done 1", "deaf 1", "listens 0"));
  other.say("done\n");
  channel->hear_last_words(1);
  EXPECT_EQ(events.size(), 5u) << "the words of others have time";
  channel->hear_last_words(0);
  EXPECT_EQ(events.back(), "done 0");
  other.say("progress 3\n");
  EXPECT_TRUE(comes_true([&] { return events.back() == "progress 0 3"; })) << "it is listened to as before";
}

TEST_F(WorkerChannelTest, H3_LastWordsAreHeardAtAnyMoment) {
  for (int turns = 0; turns < 12; ++turns) {
    SCOPED_TRACE(turns);
    events.clear();
    channel->start_round(2, 2);
    {
      auto worker = connect();
      worker.say("hello 1 2 1\n");
      for (int turn = 0; turn < turns; ++turn) io.poll_one();
      channel->ask_to_save(1, 1s);  // a write under way beside the read
      worker.say("safe 4\ndone\n");
    }
    channel->hear_last_words(1);
    EXPECT_THAT(events, testing::Contains("done 1"));
    EXPECT_THAT(events, testing::Contains("safe 1 4"));
    ASSERT_TRUE(comes_true([&] { return !events.empty() && events.back() == "deaf 1"; }));
  }
}

TEST_F(WorkerChannelTest, AFloodOfConnectionsIsBoundedAndLeavesRoomOnceItIsOver) {
  std::vector<Peer> flood;
  for (int i = 0; i < 100; ++i) {
    flood.push_back(connect());
    io.poll();
  }
  EXPECT_TRUE(is_cut_off(flood.back()));
  flood.clear();
  EXPECT_TRUE(comes_true([&] {
    auto worker = connect();
    worker.say("hello 1 2 0\n");
    io.run_one_for(10ms);
    io.poll();
    return !events.empty();
  }));
}

/// There is no descriptor for a connection.
class NoDescriptorLeft {
 public:
  NoDescriptorLeft() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(next);
    const rlimit limit{static_cast<rlim_t>(next), before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~NoDescriptorLeft() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(WorkerChannelTest, WithoutDescriptorsWorkersWaitAtTheDoorAndItDoesNotSpin) {
  MUSTER_NEEDS_NO_DESCRIPTOR_FOR_TYPE_CHECKS();
  auto worker = connect();
  worker.say("hello 1 2 0\n");
  {
    const NoDescriptorLeft limit;
    EXPECT_LT(io.run_for(100ms), 5U);
  }
  EXPECT_TRUE(comes_true([&] { return !events.empty(); }));
}

TEST_F(WorkerChannelTest, ItMayGoWhileAConnectionIsBeingTold) {
  // Both are told of in one go, the end of the channel first.
  Protocol::socket first(io);
  Protocol::socket other(io);
  boost::asio::local::connect_pair(first, other);
  first.async_wait(Protocol::socket::wait_read, [this](const auto&) { channel.reset(); });
  io.poll();
  boost::asio::write(other, boost::asio::buffer("x", 1));
  auto worker = connect();
  worker.say("hello 1 2 0\n");
  io.poll();
  EXPECT_FALSE(channel);
  EXPECT_TRUE(events.empty());
}

}  // namespace
}  // namespace muster::agent
