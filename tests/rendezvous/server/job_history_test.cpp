#include "rendezvous/server/job_history.hpp"

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

using std::chrono::seconds;

JobHistory::Time at(int second) { return {Instant(seconds(second)), second * 1000}; }

Assignment round_of(int number) {
  Assignment assignment;
  assignment.round = number;
  assignment.group_world_size = 2;
  assignment.world_size = 4;
  assignment.master_addr = "10.0.0.1";
  assignment.master_port = 29500;
  assignment.reason = "all 2 nodes are here";
  assignment.forming_took = seconds(1);
  return assignment;
}

TEST(JobHistory, WhatIsToldToEveryNodeIsOneEvent) {
  JobHistory history;
  EXPECT_TRUE(history.told(round_of(1), at(10)));
  EXPECT_FALSE(history.told(round_of(1), at(10)));
  EXPECT_TRUE(history.told(Drain{1, seconds(30), "node n3 joined"}, at(20)));
  EXPECT_FALSE(history.told(Drain{1, seconds(29), "node n3 joined"}, at(21)));
  EXPECT_TRUE(history.told(StopWorkers{1, "all saved"}, at(22)));
  EXPECT_FALSE(history.told(StopWorkers{1, "all saved"}, at(22)));
  EXPECT_EQ(history.events().size(), 3u);
  EXPECT_EQ(history.events()[0].text,
            "round 1: 2 nodes, 4 workers, master 10.0.0.1:29500, formed in 1 s: all 2 nodes are here");
  EXPECT_EQ(history.events()[0].unix_time_ms, 10'000);
}

TEST(JobHistory, ARoundKnowsHowLongItsPhasesTook) {
  JobHistory history;
  history.told(round_of(1), at(10));
  history.told(Drain{1, seconds(30), "node n3 joined"}, at(20));
  history.told(StopWorkers{1, "all saved"}, at(22));
  history.told(round_of(2), at(26));
  history.ended({}, at(40));
  ASSERT_EQ(history.rounds().size(), 2u);
  const auto& first = history.rounds()[0];
  EXPECT_EQ(*first.drain_at - first.formed_at, seconds(10));
  EXPECT_EQ(*first.stop_at - *first.drain_at, seconds(2));
  EXPECT_EQ(*first.ended_at - *first.stop_at, seconds(3)) << "the next round's forming began then";
  EXPECT_EQ(first.end_reason, "all saved");
  EXPECT_EQ(*history.rounds()[1].ended_at, at(40).now);
}

TEST(JobHistory, WhatAgentsSayIsNotedWhenItMatters) {
  JobHistory history;
  NodeOffer offer;
  offer.node = "n1";
  offer.address = "10.0.0.1";
  offer.local_workers = 2;
  EXPECT_EQ(history.heard("n1", Join{offer}, nullptr, at(1)), "node n1 (10.0.0.1) joins with 2 workers");
  EXPECT_EQ(history.heard("n1", Leave{"SIGTERM"}, nullptr, at(1)), "node n1 leaves: SIGTERM");
  EXPECT_FALSE(history.heard("n1", Progress{1, 5}, nullptr, at(1)));
  EXPECT_FALSE(history.heard("n1", WorkersStopped{1}, nullptr, at(1)));
}

TEST(JobHistory, ANodeJoinsOnceAndNotInEachRound) {
  JobHistory history;
  Member member;
  member.offer.node = "n1";
  member.offer.address = "10.0.0.1";
  member.offer.incarnation = "first";
  EXPECT_FALSE(history.heard("n1", Join{member.offer}, &member, at(1)));
  auto again = member.offer;
  again.incarnation = "second";
  EXPECT_EQ(history.heard("n1", Join{again}, &member, at(2)), "node n1 (10.0.0.1) joins with 1 worker");
  member.away_until = Instant(seconds(9));
  EXPECT_EQ(history.heard("n1", Join{member.offer}, &member, at(3)), "node n1 is back and waits for a round");
}

TEST(JobHistory, OneIsNotMany) {
  JobHistory history;
  auto alone = round_of(1);
  alone.group_world_size = alone.world_size = 1;
  EXPECT_EQ(history.told(alone, at(1))->substr(0, 27), "round 1: 1 node, 1 worker, ");
}

TEST(JobHistory, ForgetsTheOldest) {
  JobHistory history;
  for (int i = 1; i <= 2000; ++i) history.told(round_of(i), at(i));
  EXPECT_EQ(history.events().size(), JobHistory::kMaxEvents);
  EXPECT_EQ(history.rounds().size(), JobHistory::kMaxRounds);
  EXPECT_EQ(history.rounds().back().number, 2000);
}

TEST(JobHistory, AnOldRoundsMessagesDoNotTouchTheNewOne) {
  JobHistory history;
  history.told(round_of(2), at(10));
  EXPECT_FALSE(history.told(StopWorkers{1, "round 1 ended while n1 was away"}, at(11)));
  EXPECT_FALSE(history.rounds().back().stop_at);
}

}  // namespace
}  // namespace muster::rendezvous
