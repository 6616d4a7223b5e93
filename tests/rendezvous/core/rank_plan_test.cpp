#include "rendezvous/core/rank_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace muster::rendezvous {
namespace {

using testing::ElementsAre;

Candidate candidate(const NodeId& node, std::uint64_t arrival, int workers = 1) {
  Candidate candidate;
  candidate.offer.node = node;
  candidate.offer.local_workers = workers;
  candidate.arrival = arrival;
  return candidate;
}

std::vector<NodeId> order(const std::vector<PlannedSeat>& seats) {
  std::vector<NodeId> nodes;
  for (const PlannedSeat& seat : seats) nodes.push_back(seat.offer.node);
  return nodes;
}

SeatMemory memory_of(const std::vector<NodeId>& nodes) {
  SeatMemory memory;
  memory.remember(1, nodes);
  return memory;
}

TEST(RankPlan, K4_RanksArePrefixSumsOfDifferentWorkerCounts) {
  const auto seats =
      plan_ranks({candidate("a", 1, 1), candidate("b", 2, 3), candidate("c", 3, 2)}, SeatMemory());
  EXPECT_THAT(order(seats), ElementsAre("a", "b", "c"));
  EXPECT_EQ(seats[0].first_rank, 0);
  EXPECT_EQ(seats[1].first_rank, 1);
  EXPECT_EQ(seats[2].first_rank, 4);
}

TEST(RankPlan, RoleRanksCountWithinTheRole) {
  auto reader = candidate("b", 2, 3);
  reader.offer.role = "reader";
  const auto seats = plan_ranks({candidate("a", 1, 1), reader, candidate("c", 3, 2)}, SeatMemory());
  EXPECT_EQ(seats[1].first_role_rank, 0);
  EXPECT_EQ(seats[1].role_world_size, 3);
  EXPECT_EQ(seats[2].first_role_rank, 1);
  EXPECT_EQ(seats[2].role_world_size, 3);
}

TEST(RankPlan, E1_TheEndpointsHostIsFirstInWhateverOrderNodesJoin) {
  std::mt19937 chance(1);
  for (int round = 0; round < 20; ++round) {
    std::vector<NodeId> names{"a", "b", "z"};
    std::shuffle(names.begin(), names.end(), chance);
    std::vector<Candidate> candidates;
    for (const NodeId& name : names) {
      candidates.push_back(candidate(name, candidates.size() + 1));
      candidates.back().offer.hosts_endpoint = name == "z";
    }
    EXPECT_EQ(order(plan_ranks(candidates, SeatMemory())).front(), "z");
  }
}

TEST(RankPlan, E2_NodeRanksAreHonouredInElasticJobsToo) {
  auto first = candidate("b", 2);
  first.offer.preferred_group_rank = 0;
  auto second = candidate("a", 1);
  second.offer.preferred_group_rank = 1;
  second.offer.hosts_endpoint = true;
  EXPECT_THAT(order(plan_ranks({second, first}, SeatMemory())), ElementsAre("b", "a"));
}

TEST(RankPlan, E2_AWishBeyondTheNumberOfNodesIsNoClaim) {
  auto far = candidate("a", 1);
  far.offer.preferred_group_rank = 7;
  EXPECT_THAT(order(plan_ranks({far, candidate("b", 2)}, SeatMemory())), ElementsAre("a", "b"));
}

TEST(RankPlan, E4_ARelaunchInAnotherOrderGivesEachNodeItsFormerRanks) {
  std::mt19937 chance(2);
  for (int round = 0; round < 20; ++round) {
    std::vector<NodeId> names{"a", "b", "c"};
    std::shuffle(names.begin(), names.end(), chance);
    std::vector<Candidate> candidates;
    for (const NodeId& name : names) candidates.push_back(candidate(name, candidates.size() + 1));
    EXPECT_THAT(order(plan_ranks(candidates, memory_of({"b", "c", "a"}))), ElementsAre("b", "c", "a"));
  }
}

TEST(RankPlan, E4_AReplacementTakesTheDeadNodesPlace) {
  EXPECT_THAT(order(plan_ranks({candidate("new", 9), candidate("c", 3), candidate("a", 1)},
                               memory_of({"a", "b", "c"}))),
              ElementsAre("a", "new", "c"));
}

TEST(RankPlan, E4_WhenTheJobShrinksThoseWhoCanStayDo) {
  EXPECT_THAT(order(plan_ranks({candidate("b", 2), candidate("c", 3)}, memory_of({"a", "b", "c"}))),
              ElementsAre("c", "b"));
}

TEST(RankPlan, A19_E4_WhenALostNodeIsBackEverybodySitsAsBefore) {
  SeatMemory memory = memory_of({"a", "b", "c"});
  const auto smaller = order(plan_ranks({candidate("b", 2), candidate("c", 3)}, memory));
  memory.remember(2, smaller);
  EXPECT_THAT(order(plan_ranks({candidate("c", 3), candidate("a", 9), candidate("b", 2)}, memory)),
              ElementsAre("a", "b", "c"));
  EXPECT_THAT(order(plan_ranks({candidate("c", 3), candidate("new", 9), candidate("b", 2)}, memory)),
              ElementsAre("new", "b", "c"));
}

TEST(RankPlan, D14_TheOldMembersComeBeforeTheSpare) {
  const auto chosen =
      choose_nodes({candidate("spare", 1), candidate("b", 5), candidate("a", 6)}, 2, memory_of({"a", "b"}));
  EXPECT_THAT(order(plan_ranks(chosen, memory_of({"a", "b"}))), ElementsAre("a", "b"));
}

TEST(RankPlan, EveryPlaceIsTakenOnceWhateverTheWishesAndMemories) {
  std::mt19937 chance(3);
  for (int round = 0; round < 500; ++round) {
    SeatMemory memory;
    std::vector<Candidate> candidates;
    const int count = 1 + static_cast<int>(chance() % 12);
    for (int i = 0; i < count; ++i) {
      const NodeId node = "n" + std::to_string(i);
      candidates.push_back(
          candidate(node, static_cast<std::uint64_t>(i), 1 + static_cast<int>(chance() % 4)));
      candidates.back().offer.hosts_endpoint = chance() % 4 == 0;
      if (chance() % 3 == 0) candidates.back().offer.preferred_group_rank = i;
      if (chance() % 2 == 0) memory.remember(round, {node});
    }
    const auto seats = plan_ranks(candidates, memory);
    ASSERT_EQ(seats.size(), candidates.size());
    int rank = 0;
    for (const PlannedSeat& seat : seats) {
      EXPECT_EQ(seat.first_rank, rank);
      rank += seat.offer.local_workers;
    }
  }
}

}  // namespace
}  // namespace muster::rendezvous
