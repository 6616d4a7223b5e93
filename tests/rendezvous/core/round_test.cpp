#include "rendezvous/core/round.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

using testing::ElementsAre;

Round round_of(const std::vector<NodeId>& nodes) {
  std::vector<Candidate> candidates;
  for (const NodeId& node : nodes) {
    Candidate candidate;
    candidate.offer.node = node;
    candidate.offer.address = "10.0.0." + std::to_string(candidates.size() + 1);
    candidate.offer.store_port = 4000;
    candidate.offer.local_workers = 2;
    candidate.arrival = candidates.size();
    candidates.push_back(candidate);
  }
  Round::State header;
  header.number = 3;
  header.restart_count = 1;
  return Round(header, plan_ranks(candidates, SeatMemory()));
}

TEST(Round, GroupRankZeroServesTheStoreForAll) {
  const Round round = round_of({"a", "b"});
  const Assignment assignment = round.assignment("b");
  EXPECT_EQ(assignment.master_addr, "10.0.0.1");
  EXPECT_EQ(assignment.master_port, 4000);
  EXPECT_EQ(assignment.first_rank, 2);
  EXPECT_EQ(assignment.world_size, 4);
  EXPECT_EQ(assignment.group_rank, 1);
  EXPECT_EQ(assignment.restart_count, 1);
}

TEST(Round, WhoHasFailedFinishedOrGoneOwesNoAnswerToADrain) {
  Round round = round_of({"a", "b", "c", "d"});
  EXPECT_THAT(round.unsafe(9), ElementsAre("a", "b", "c", "d"));
  round.mark_failed("a");
  round.mark_succeeded("b");
  round.mark_gone("c");
  EXPECT_THAT(round.unsafe(9), ElementsAre("d"));
  EXPECT_FALSE(round.all_safe());
  round.mark_safe("d", 812);
  EXPECT_TRUE(round.all_safe());
  EXPECT_THAT(round.unstopped(2), ElementsAre("a", "b"));
}

TEST(Round, StoppedWhenEverybodyWhoIsStillHereHasStopped) {
  Round round = round_of({"a", "b"});
  round.mark_stopped("a");
  EXPECT_FALSE(round.all_stopped());
  round.mark_gone("b");
  EXPECT_TRUE(round.all_stopped());
  round.mark_back("b");
  EXPECT_FALSE(round.all_stopped());
}

TEST(Round, AllSucceededCountsThoseWhoHaveGoneSince) {
  Round round = round_of({"a", "b"});
  round.mark_succeeded("a");
  round.mark_gone("a");
  EXPECT_FALSE(round.all_succeeded());
  round.mark_succeeded("b");
  EXPECT_TRUE(round.all_succeeded());
}

TEST(Round, AnAdoptedRoundsPlacesAreTakenOnce) {
  Round round = Round::adopted(7, 2, 1, 3);
  Resume resume;
  resume.offer.node = "a";
  EXPECT_TRUE(round.claim(0, resume));
  EXPECT_TRUE(round.claim(0, resume)) << "again, by the same node";
  resume.offer.node = "b";
  EXPECT_FALSE(round.claim(0, resume));
  EXPECT_FALSE(round.claim(2, resume));
  EXPECT_EQ(round.unclaimed(), 1);
  EXPECT_TRUE(round.claim(1, resume));
  EXPECT_EQ(round.unclaimed(), 0);
}

TEST(Round, MarksForNodesItDoesNotKnowAreIgnored) {
  Round round = round_of({"a"});
  round.mark_stopped("stranger");
  EXPECT_FALSE(round.all_stopped());
}

}  // namespace
}  // namespace muster::rendezvous
