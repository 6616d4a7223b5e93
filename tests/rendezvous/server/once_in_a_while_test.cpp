#include "rendezvous/server/once_in_a_while.hpp"

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

TEST(OnceInAWhile, TheFirstPassesAndTheOthersAreCountedUntilTheNextMinute) {
  OnceInAWhile once;
  const Instant start{};
  EXPECT_EQ(once.let_through("n1", "a", start), 0);
  EXPECT_EQ(once.let_through("n1", "b", start), 0);
  for (int i = 1; i <= 5; ++i) EXPECT_FALSE(once.let_through("n1", "a", start + std::chrono::seconds(i)));
  EXPECT_EQ(once.let_through("n1", "a", start + std::chrono::seconds(60)), 5);
  EXPECT_FALSE(once.let_through("n1", "a", start + std::chrono::seconds(61)));
}

TEST(OnceInAWhile, WhoIsRefusedForAnotherReasonEachTimeFillsNoLogAndHidesNobody) {
  OnceInAWhile once;
  const Instant start{};
  int lines = 0;
  for (int i = 0; i < 100'000; ++i) {
    lines +=
        once.let_through("n1", std::to_string(i), start + i * std::chrono::microseconds(100)).has_value();
    EXPECT_EQ(once.last_about("n1"), lines == OnceInAWhile::kMaxLinesAboutOne);
  }
  EXPECT_EQ(lines, OnceInAWhile::kMaxLinesAboutOne);
  EXPECT_TRUE(once.let_through("n2", "a", start + std::chrono::seconds(10)));
  EXPECT_TRUE(once.let_through("n1", "a", start + std::chrono::minutes(1)))
      << "the next minute has lines again";
  EXPECT_FALSE(once.last_about("n1"));
}

TEST(OnceInAWhile, ForgetsRatherThanGrows) {
  OnceInAWhile once;
  for (std::size_t i = 0; i <= OnceInAWhile::kMaxKeys; ++i)
    EXPECT_TRUE(once.let_through(std::to_string(i), "a", Instant{}));
  EXPECT_EQ(once.let_through("0", "a", Instant{}), 0);
}

}  // namespace
}  // namespace muster::rendezvous
