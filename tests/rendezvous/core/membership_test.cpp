#include "rendezvous/core/membership.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

constexpr Instant start = Instant(24h);

NodeOffer offer(const NodeId& node) {
  NodeOffer offer;
  offer.node = node;
  return offer;
}

TEST(Membership, AvailableIsWhoIsReadyConnectedAndStays) {
  Membership members;
  for (const char* node : {"c", "a", "b", "d"}) members.join(offer(node), Stand::ready);
  EXPECT_THAT(members.first_available(9), ElementsAre("c", "a", "b", "d")) << "in the order of arrival";
  members.set_stand("c", Stand::seated);
  members.set_leaving("a", "SIGTERM", false);
  members.away("b", start, true, "closed");
  EXPECT_THAT(members.first_available(9), ElementsAre("d"));
  EXPECT_EQ(members.available(), 1);
  EXPECT_EQ(members.coming(), 1) << "b, which may come back";
  EXPECT_EQ(members.staying(), 3) << "all but a";
}

TEST(Membership, WhoComesBackKeepsItsPlaceInTheQueue) {
  Membership members;
  members.join(offer("a"), Stand::ready);
  members.join(offer("b"), Stand::ready);
  members.away("a", start + 2s, true, "closed");
  members.back("a");
  EXPECT_THAT(members.first_available(9), ElementsAre("a", "b"));
  EXPECT_FALSE(members.next_overdue());
}

TEST(Membership, TheFirstWhoseTimeIsOverIsLostFirst) {
  Membership members;
  for (const char* node : {"a", "b", "c"}) members.join(offer(node), Stand::seated);
  members.away("a", start + 30s, true, "broken");
  members.away("b", start + 2s, true, "closed");
  EXPECT_EQ(members.next_overdue(), start + 2s);
  EXPECT_TRUE(members.overdue(start + 1s).empty());
  EXPECT_THAT(members.overdue(start + 2s), ElementsAre("b"));
  EXPECT_THAT(members.overdue(start + 1h), ElementsAre("b", "a"));
}

TEST(Membership, AClaimGoesWithItsNode) {
  Membership members;
  NodeOffer claiming = offer("a");
  claiming.preferred_group_rank = 0;
  members.join(claiming, Stand::ready);
  EXPECT_EQ(members.claimant(0), "a");
  claiming.preferred_group_rank = 1;
  members.join(claiming, Stand::ready);
  EXPECT_FALSE(members.claimant(0));
  EXPECT_EQ(members.claimant(1), "a");
  members.remove("a");
  EXPECT_FALSE(members.claimant(1));
}

TEST(Membership, RebuiltFromItsMembersItGivesTheSameAnswers) {
  Membership members;
  for (const char* node : {"c", "a", "b"}) members.join(offer(node), Stand::ready);
  members.away("a", start, true, "closed");
  Membership again(members.all());
  EXPECT_EQ(again.first_available(9), members.first_available(9));
  EXPECT_EQ(again.next_overdue(), members.next_overdue());
  EXPECT_EQ(again.coming(), members.coming());
  again.join(offer("d"), Stand::ready);
  EXPECT_THAT(again.first_available(9), ElementsAre("c", "b", "d"));
}

}  // namespace
}  // namespace muster::rendezvous
