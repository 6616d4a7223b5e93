#include "base/ranks.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(RanksText, JoinsNeighbours) {
  EXPECT_EQ(ranks_text({3}), "rank 3");
  EXPECT_EQ(ranks_text({0, 1, 2, 4, 7, 8}), "ranks 0-2, 4, 7-8");
}

}  // namespace
}  // namespace muster
