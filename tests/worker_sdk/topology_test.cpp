#include "worker_sdk/src/topology.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace muster::worker {
namespace {

using testing::ElementsAre;

TEST(Topology, RanksOfANodeNeedNotFollowEachOther) {
  const std::vector<WorkerPlace> places{{0, 0}, {1, 0}, {0, 1}, {1, 1}};
  EXPECT_THAT(ranks_on_node(places, 2), ElementsAre(0, 2));
  EXPECT_THAT(ranks_on_node(places, 3), ElementsAre(1, 3));
  EXPECT_THAT(ranks_across_nodes(places, 2), ElementsAre(2, 3));
  EXPECT_THAT(ranks_across_nodes(places, 1), ElementsAre(0, 1));
}

TEST(Topology, NodesOfDifferentSizesHaveNoGroupsAcross) {
  const std::vector<WorkerPlace> places{{0, 0}, {0, 1}, {1, 0}};
  EXPECT_THAT(ranks_on_node(places, 2), ElementsAre(2));
  try {
    (void)ranks_across_nodes(places, 0);
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "groups across nodes: node 0 has 2 workers, node 1 has 1; start as many on each node");
  }
}

}  // namespace
}  // namespace muster::worker
