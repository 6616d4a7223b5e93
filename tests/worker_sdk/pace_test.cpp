#include "worker_sdk/src/pace.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace muster::worker {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

Clock::duration time_of(const auto& call) {
  const auto start = Clock::now();
  call();
  return Clock::now() - start;
}

TEST(Pace, AllOfItsTimeWhereAProcessorIsLeftOverElseAThird) {
  EXPECT_EQ(background_share(1, 2), 1);
  EXPECT_EQ(background_share(8, 64), 1);
  EXPECT_DOUBLE_EQ(background_share(2, 2), 1.0 / 3);
  EXPECT_DOUBLE_EQ(background_share(9, 8), 1.0 / 3);
}

TEST(Pace, RestsTwiceAsLongAsItWorkedForAThirdOfTheTime) {
  Pace pace(1.0 / 3);
  for (int piece = 0; piece < 2; ++piece) {
    std::this_thread::sleep_for(20ms);
    EXPECT_GE(time_of([&] { pace.rest(); }), 40ms) << "piece " << piece;
  }
}

TEST(Pace, NeverRestsWithAllOfTheTime) {
  Pace pace(1);
  std::this_thread::sleep_for(50ms);
  EXPECT_LT(time_of([&] { pace.rest(); }), 50ms);
}

TEST(Pace, NoRestTakesMuchLongerThanASecond) {
  for (const double share : {1e-6, 1e-300}) {
    Pace pace(share);
    std::this_thread::sleep_for(10ms);  // of which the share would make hours
    const auto rest = time_of([&] { pace.rest(); });
    EXPECT_GE(rest, 1s);
    EXPECT_LT(rest, 20s);
  }
}

TEST(Pace, AHurryEndsTheRestUnderWayAndAllLaterOnes) {
  Pace pace(1e-6);
  std::thread working([&] {
    for (int piece = 0; piece < 100; ++piece) {
      std::this_thread::sleep_for(1ms);
      pace.rest();
    }
  });
  std::this_thread::sleep_for(10ms);
  pace.hurry();
  // At a second for each rest it would be 100 s.
  EXPECT_LT(time_of([&] { working.join(); }), 20s);
}

}  // namespace
}  // namespace muster::worker
