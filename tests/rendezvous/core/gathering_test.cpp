#include "rendezvous/core/gathering.hpp"

#include <gtest/gtest.h>

#include <random>

namespace muster::rendezvous {
namespace {

using namespace std::chrono_literals;

constexpr Instant start = Instant(24h);

JobPolicy two_to_four() {
  JobPolicy policy;
  policy.min_nodes = 2;
  policy.max_nodes = 4;
  return policy;
}

GatherVerdict verdict(Gathering& gathering, Roster roster, Instant now) {
  note_roster(gathering, roster, two_to_four(), now);
  return decide(gathering, roster, two_to_four(), 500ms, now);
}

Gathering since_start() {
  Gathering gathering;
  gathering.since = start;
  return gathering;
}

TEST(Gathering, AtMaxTheRoundFormsAtOnce) {
  Gathering gathering = since_start();
  EXPECT_EQ(verdict(gathering, {4, 0}, start), GatherVerdict::form);
}

TEST(Gathering, FromMinOnTheRoundFormsAfterTheLastCall) {
  Gathering gathering = since_start();
  EXPECT_EQ(verdict(gathering, {2, 0}, start + 5s), GatherVerdict::wait);
  EXPECT_EQ(verdict(gathering, {3, 0}, start + 34s), GatherVerdict::wait);
  EXPECT_EQ(verdict(gathering, {3, 0}, start + 35s), GatherVerdict::form);
}

TEST(Gathering, ANodeThatGoesAwayStartsTheLastCallAnew) {
  Gathering gathering = since_start();
  EXPECT_EQ(verdict(gathering, {2, 0}, start), GatherVerdict::wait);
  EXPECT_EQ(verdict(gathering, {1, 0}, start + 20s), GatherVerdict::wait);
  EXPECT_EQ(verdict(gathering, {2, 0}, start + 31s), GatherVerdict::wait);
  EXPECT_EQ(verdict(gathering, {2, 0}, start + 61s), GatherVerdict::form);
}

TEST(Gathering, A10_NoMoreComingEndsTheLastCall) {
  Gathering gathering = since_start();
  gathering.roster_closed = true;
  EXPECT_EQ(verdict(gathering, {1, 0}, start), GatherVerdict::wait);
  EXPECT_EQ(verdict(gathering, {2, 0}, start), GatherVerdict::form);
}

TEST(Gathering, A8_TheJoinDeadlineGivesUpBelowMinAndFormsFromMinOn) {
  Gathering gathering = since_start();
  EXPECT_EQ(verdict(gathering, {1, 0}, start + 599s), GatherVerdict::wait);
  EXPECT_EQ(verdict(gathering, {1, 0}, start + 600s), GatherVerdict::give_up);
  gathering = since_start();
  EXPECT_EQ(verdict(gathering, {2, 0}, start + 590s), GatherVerdict::wait);
  EXPECT_EQ(verdict(gathering, {2, 0}, start + 600s), GatherVerdict::form);
}

TEST(Gathering, ReformingWaitsForThoseWhoBelongToTheJobAndForNobodyElse) {
  Gathering gathering = since_start();
  gathering.reforming = true;
  EXPECT_EQ(verdict(gathering, {2, 1}, start), GatherVerdict::wait);
  EXPECT_EQ(verdict(gathering, {3, 0}, start + 1s), GatherVerdict::form);
}

TEST(Gathering, ReformingWaitsForMembersHoweverShortTheLastCallIs) {
  JobPolicy policy = two_to_four();
  policy.last_call = 0s;
  Gathering gathering = since_start();
  gathering.reforming = true;
  note_roster(gathering, {2, 1}, policy, start);
  EXPECT_EQ(decide(gathering, {2, 1}, policy, 500ms, start + 59s), GatherVerdict::wait);
  EXPECT_EQ(decide(gathering, {2, 1}, policy, 500ms, start + 60s), GatherVerdict::form);
}

TEST(Gathering, M7_ReformingAfterAChangeLetsItSettle) {
  Gathering gathering = since_start();
  gathering.reforming = true;
  gathering.settle.note(start);
  EXPECT_EQ(verdict(gathering, {2, 0}, start + 400ms), GatherVerdict::wait);
  EXPECT_EQ(verdict(gathering, {2, 0}, start + 500ms), GatherVerdict::form);
}

TEST(Gathering, A11_OnceEnoughWaitAndTheWindowHasPassedTheRoundCompletes) {
  std::mt19937 chance(11);
  for (int seed = 0; seed < 1000; ++seed) {
    Gathering gathering = since_start();
    gathering.reforming = chance() % 2 == 0;
    Roster roster{};
    Instant now = start;
    for (int event = 0; event < 20; ++event) {
      now += std::chrono::milliseconds(chance() % 8000);
      roster.here = static_cast<int>(chance() % 4);
      roster.coming = static_cast<int>(chance() % 2);
      if (verdict(gathering, roster, now) != GatherVerdict::wait) break;
      const Instant again = ask_again_at(gathering, roster, two_to_four(), 500ms);
      ASSERT_GT(again, now) << "it would spin";
      Gathering later = gathering;
      ASSERT_NE(verdict(later, roster, again), GatherVerdict::wait) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace muster::rendezvous
