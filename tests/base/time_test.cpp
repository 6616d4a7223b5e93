#include "base/time.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

using namespace std::chrono_literals;

TEST(Human, TwoUnitsAtMost) {
  EXPECT_EQ(human(0ms), "0 s");
  EXPECT_EQ(human(300us), "under 1 ms");
  EXPECT_EQ(human(12ms), "12 ms");
  EXPECT_EQ(human(600ms), "0.6 s");
  EXPECT_EQ(human(30s), "30 s");
  EXPECT_EQ(human(598s), "9 min 58 s");
  EXPECT_EQ(human(600s), "10 min");
  EXPECT_EQ(human(3780s), "1 h 3 min");
  EXPECT_EQ(human(-5s), "-5 s");
}

TEST(ParseDuration, NumbersWithUnits) {
  Duration d{};
  ASSERT_TRUE(parse_duration("30", &d));
  EXPECT_EQ(d, 30s);
  ASSERT_TRUE(parse_duration("500ms", &d));
  EXPECT_EQ(d, 500ms);
  ASSERT_TRUE(parse_duration("1.5m", &d));
  EXPECT_EQ(d, 90s);
  for (const char* bad : {"", "x", "-1", "5 parsecs", "inf", "nan", "1e30"})
    EXPECT_FALSE(parse_duration(bad, &d)) << bad;
}

}  // namespace
}  // namespace muster
