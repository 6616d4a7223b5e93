#include "rendezvous/core/seat_memory.hpp"

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

TEST(SeatMemory, ANodeThatMissedARoundIsStillRemembered) {
  SeatMemory memory;
  memory.remember(1, {"a", "b"});
  memory.remember(2, {"a"});
  EXPECT_EQ(memory.of("b"), (SeatMemory::Place{1, 1}));
  EXPECT_EQ(memory.of("a"), (SeatMemory::Place{0, 2}));
  EXPECT_FALSE(memory.of("c"));
}

TEST(SeatMemory, TheOldestAreForgottenWhenThereAreTooMany) {
  SeatMemory memory;
  for (int round = 1; round <= 1000; ++round) memory.remember(round, {"n" + std::to_string(round)});
  EXPECT_EQ(memory.state().size(), min_places_kept);
  EXPECT_FALSE(memory.of("n1"));
  EXPECT_TRUE(memory.of("n1000"));
}

}  // namespace
}  // namespace muster::rendezvous
