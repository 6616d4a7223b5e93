#include "worker_sdk/src/lane.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <future>
#include <stdexcept>
#include <vector>

namespace muster::worker {
namespace {

using namespace std::chrono_literals;

TEST(Lane, RunsInOrderAndEndsWhatIsQueued) {
  std::vector<int> order;
  {
    Lane lane;
    for (int i = 0; i < 100; ++i) lane.push([&order, i] { order.push_back(i); });
  }
  ASSERT_EQ(order.size(), 100U);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(Lane, TheCallerWaitsWhenTheQueueIsFull) {
  std::promise<void> gate;
  std::shared_future<void> opened = gate.get_future().share();
  std::promise<void> running;
  Lane lane;
  lane.push([&running, opened] {
    running.set_value();
    opened.wait();
  });
  running.get_future().wait();
  EXPECT_FALSE(lane.idle());
  for (std::size_t i = 0; i < max_queued_operations; ++i) lane.push([] {});
  auto one_more = std::async(std::launch::async, [&] { lane.push([] {}); });
  EXPECT_EQ(one_more.wait_for(50ms), std::future_status::timeout);
  gate.set_value();
  EXPECT_EQ(one_more.wait_for(20s), std::future_status::ready);
}

TEST(Lane, ItsThreadGetsNoSignals) {
  sigset_t mask;
  sigemptyset(&mask);
  {
    Lane lane;
    lane.push([&mask] { ::pthread_sigmask(SIG_SETMASK, nullptr, &mask); });
  }
  EXPECT_EQ(::sigismember(&mask, SIGPIPE), 1);
  EXPECT_EQ(::sigismember(&mask, SIGTERM), 1);
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_EQ(::sigismember(&mask, SIGTERM), 0) << "the caller's own mask is as before";
}

TEST(PendingWork, TellsItsEndToEverybodyWhoAsks) {
  PendingWork work;
  EXPECT_FALSE(work.done());
  auto other = std::async(std::launch::async, [&] { work.wait(); });
  work.finish(std::make_exception_ptr(CollectiveError("why")));
  EXPECT_TRUE(work.done());
  EXPECT_THROW(work.wait(), CollectiveError);
  EXPECT_THROW(other.get(), CollectiveError);
  PendingWork good;
  good.finish(nullptr);
  good.wait();
}

TEST(PendingWork, AWaitWithALimitEndsWithoutTheWork) {
  PendingWork work;
  EXPECT_FALSE(work.wait_for(1ms));
  work.finish(nullptr);
  EXPECT_TRUE(work.wait_for(1ms));
  PendingWork failed;
  failed.finish(std::make_exception_ptr(CollectiveError("lost")));
  EXPECT_THROW((void)failed.wait_for(1ms), CollectiveError);
}

}  // namespace
}  // namespace muster::worker
