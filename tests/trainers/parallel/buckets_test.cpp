#include "trainers/parallel/buckets.hpp"

#include <gmock/gmock.h>

namespace muster::trainers {
namespace {

using Plan = std::vector<std::vector<std::size_t>>;

TEST(Buckets, TheFirstIsSmallTheOthersLarge) {
  const std::vector<std::int64_t> sizes = {4, 4, 4, 10, 10, 30, 1};
  EXPECT_EQ(plan_buckets(sizes, {.first_bytes = 8, .other_bytes = 20}), (Plan{{0, 1}, {2, 3, 4}, {5}, {6}}));
}

TEST(Buckets, ALargeGradientClosesItsBucketAlone) {
  const std::vector<std::int64_t> sizes = {100, 1};
  EXPECT_EQ(plan_buckets(sizes, {.first_bytes = 8, .other_bytes = 20}), (Plan{{0}, {1}}));
}

TEST(Buckets, NothingGivesNone) { EXPECT_TRUE(plan_buckets({}, {}).empty()); }

TEST(Buckets, DefaultsArePyTorchs) {
  EXPECT_EQ(BucketLimits{}.first_bytes, 1 << 20);
  EXPECT_EQ(BucketLimits{}.other_bytes, 25 << 20);
}

}  // namespace
}  // namespace muster::trainers
