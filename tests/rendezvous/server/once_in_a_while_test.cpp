#include "rendezvous/server/once_in_a_while.hpp"

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

TEST(OnceInAWhile, TheFirstPassesAndTheOthersAreCountedUntilTheNextMinute) {
  OnceInAWhile once;
  const Instant start{};
  EXPECT_EQ(once.let_through("a", start), 0);
  EXPECT_EQ(once.let_through("b", start), 0);
  for (int i = 1; i <= 5; ++i) EXPECT_FALSE(once.let_through("a", start + std::chrono::seconds(i)));
  EXPECT_EQ(once.let_through("a", start + std::chrono::seconds(60)), 5);
  EXPECT_FALSE(once.let_through("a", start + std::chrono::seconds(61)));
}

TEST(OnceInAWhile, ForgetsRatherThanGrows) {
  OnceInAWhile once;
  for (std::size_t i = 0; i <= OnceInAWhile::kMaxKeys; ++i)
    EXPECT_TRUE(once.let_through(std::to_string(i), Instant{}));
  EXPECT_EQ(once.let_through("0", Instant{}), 0);
}

}  // namespace
}  // namespace muster::rendezvous
