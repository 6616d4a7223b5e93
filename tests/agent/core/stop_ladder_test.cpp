#include "agent/core/stop_ladder.hpp"

#include <gtest/gtest.h>

namespace muster::agent {
namespace {

using namespace std::chrono_literals;
using Step = StopLadder::Step;

const Instant t0{};

TEST(StopLadder, GivesEachStepOnceAndThenNeedsNoClock) {
  StopLadder ladder(5s);
  EXPECT_FALSE(ladder.wake_at());
  ladder.begin(30s, t0);
  EXPECT_EQ(ladder.wake_at(), t0 + 30s);
  EXPECT_EQ(ladder.tick(t0 + 29s), Step::none);
  EXPECT_EQ(ladder.tick(t0 + 30s), Step::kill);
  EXPECT_EQ(ladder.tick(t0 + 30s), Step::none);
  EXPECT_EQ(ladder.wake_at(), t0 + 35s);
  EXPECT_EQ(ladder.tick(t0 + 36s), Step::give_up);
  EXPECT_EQ(ladder.tick(t0 + 99s), Step::none);
  EXPECT_FALSE(ladder.wake_at());
}

TEST(StopLadder, AShorterGraceBringsTheKillNearerALongerOneNever) {
  StopLadder ladder(5s);
  ladder.begin(30s, t0);
  ladder.begin(60s, t0 + 1s);
  EXPECT_EQ(ladder.wake_at(), t0 + 30s);
  ladder.begin(3s, t0 + 1s);
  EXPECT_EQ(ladder.wake_at(), t0 + 4s);
  EXPECT_EQ(ladder.grace(), 3s);
}

TEST(StopLadder, BegunAnewItCountsFromThere) {
  StopLadder ladder(5s);
  ladder.begin(3s, t0);
  EXPECT_EQ(ladder.left(t0 + 1s), 2s);
  ladder.begin_anew(20s, t0 + 1s);
  EXPECT_EQ(ladder.wake_at(), t0 + 21s);
  EXPECT_EQ(ladder.grace(), 20s);
}

TEST(StopLadder, NothingUndoesAKill) {
  StopLadder ladder(5s);
  ladder.begin(0s, t0);
  EXPECT_EQ(ladder.tick(t0), Step::kill);
  ladder.begin(60s, t0);
  EXPECT_EQ(ladder.wake_at(), t0 + 5s);
}

}  // namespace
}  // namespace muster::agent
