#include "rendezvous/core/cooldown.hpp"

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

using namespace std::chrono_literals;

constexpr Instant start = Instant(24h);

TEST(Cooldown, D15_OneFailureHasNoConsequence) {
  Cooldown cooldown{JobPolicy{}};
  cooldown.strike("n1", start);
  EXPECT_FALSE(cooldown.until("n1", start));
}

TEST(Cooldown, D15_TheDelayDoublesUpToItsCapAndThenEnds) {
  Cooldown cooldown{JobPolicy{}};
  cooldown.strike("n1", start);
  cooldown.strike("n1", start);
  EXPECT_EQ(cooldown.until("n1", start), start + 10s);
  EXPECT_FALSE(cooldown.until("n1", start + 10s));
  cooldown.strike("n1", start);
  EXPECT_EQ(cooldown.until("n1", start), start + 20s);
  for (int i = 0; i < 20; ++i) cooldown.strike("n1", start);
  EXPECT_EQ(cooldown.until("n1", start), start + 600s);
  EXPECT_FALSE(cooldown.until("n2", start));
}

TEST(Cooldown, D15_OldFailuresAreForgotten) {
  Cooldown cooldown{JobPolicy{}};
  cooldown.strike("n1", start);
  cooldown.strike("n1", start + 31min);
  EXPECT_EQ(cooldown.strikes("n1", start + 31min), 1);
}

TEST(Cooldown, D15_OnlyThoseOfTheLastMinuteCountForARefusal) {
  Cooldown cooldown{JobPolicy{}};
  for (int i = 0; i < 6; ++i) cooldown.strike("n1", start + i * 20s);
  EXPECT_EQ(cooldown.strikes("n1", start + 100s), 6);
  EXPECT_EQ(cooldown.strikes_of_late("n1", start + 100s), 3);
  EXPECT_EQ(cooldown.strikes_of_late("n1", start + 3min), 0);
  EXPECT_EQ(cooldown.strikes_of_late("n2", start), 0);
}

TEST(Cooldown, D15_AnOperatorPardons) {
  Cooldown cooldown{JobPolicy{}};
  EXPECT_FALSE(cooldown.clear("n1"));
  cooldown.strike("n1", start);
  cooldown.strike("n1", start);
  EXPECT_EQ(cooldown.cooling(start), std::vector<NodeId>{"n1"});
  EXPECT_TRUE(cooldown.clear("n1"));
  EXPECT_TRUE(cooldown.cooling(start).empty());
}

TEST(Cooldown, TheBookHasALimit) {
  Cooldown cooldown{JobPolicy{}};
  for (int i = 0; i < 5000; ++i) cooldown.strike("n" + std::to_string(i), start);
  for (int i = 0; i < 100; ++i) cooldown.strike("n0", start);
  EXPECT_EQ(cooldown.strikes("n0", start), static_cast<int>(max_strikes_kept));
  EXPECT_EQ(cooldown.state().size(), max_struck_nodes);
  cooldown.strike("late", start + 1h);
  EXPECT_EQ(cooldown.strikes("late", start + 1h), 1) << "the old ones make room";
}

}  // namespace
}  // namespace muster::rendezvous
