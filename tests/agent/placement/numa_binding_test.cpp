#include "agent/placement/numa_binding.hpp"

#include "tests/agent/placement/machine.hpp"

namespace muster::agent {
namespace {

class NumaBinding : public ::testing::Test {
 protected:
  NumaBinding() { machine.two_sockets_of_two_nodes(); }

  Binding bound(NumaMode mode, int local_workers, std::vector<std::optional<int>> device_nodes = {}) const {
    return bind_workers({mode, local_workers, std::move(device_nodes)},
                        *read_topology(machine.root(), allowed));
  }

  Machine machine;
  std::vector<int> allowed = machine.all(16);
};

TEST_F(NumaBinding, K2_WithoutDevicesTheNodesAreTakenInTurn) {
  const Binding binding = bound(NumaMode::node, 5);
  EXPECT_THAT(binding.workers[0].cpus, ElementsAre(0, 1, 8, 9));
  EXPECT_THAT(binding.workers[3].cpus, ElementsAre(6, 7, 14, 15));
  EXPECT_EQ(binding.workers[4].node, 0);
  EXPECT_THAT(binding.notes, IsEmpty());
  EXPECT_THAT(binding_text(binding),
              HasSubstr("local rank 0: CPUs 0-1,8-9 (node 0), 1: CPUs 2-3,10-11 (node 1)"));
}

TEST_F(NumaBinding, K2_AWorkerIsNearItsDevice) {
  const Binding binding = bound(NumaMode::node, 2, {3, 1});
  EXPECT_EQ(binding.workers[0], (WorkerCpus{{6, 7, 14, 15}, 3, true}));
  EXPECT_EQ(binding.workers[1], (WorkerCpus{{2, 3, 10, 11}, 1, true}));
}

TEST_F(NumaBinding, SocketTakesAllNodesOfTheSocket) {
  EXPECT_THAT(bound(NumaMode::socket, 1, {2}).workers[0].cpus, ElementsAre(4, 5, 6, 7, 12, 13, 14, 15));
}

TEST_F(NumaBinding, ExclusiveSharesOutWholeCores) {
  const Binding two = bound(NumaMode::exclusive, 2, {1, 1});
  EXPECT_THAT(two.workers[0].cpus, ElementsAre(2, 10));
  EXPECT_THAT(two.workers[1].cpus, ElementsAre(3, 11));
  EXPECT_THAT(bound(NumaMode::exclusive, 1, {1}).workers[0].cpus, ElementsAre(2, 3, 10, 11));
}

TEST_F(NumaBinding, TheFirstTakeTheCoresThatDoNotDivide) {
  Machine odd;
  odd.node(0, "0-4");
  for (int cpu = 0; cpu < 5; ++cpu) odd.cpu(cpu, 0, std::to_string(cpu), "0-4");
  const Binding binding =
      bind_workers({NumaMode::exclusive, 2, {0, 0}}, *read_topology(odd.root(), odd.all(5)));
  EXPECT_THAT(binding.workers[0].cpus, ElementsAre(0, 1, 2));
  EXPECT_THAT(binding.workers[1].cpus, ElementsAre(3, 4));
}

TEST_F(NumaBinding, K2_MoreWorkersThanCoresShareThemAndItIsSaid) {
  const Binding binding = bound(NumaMode::exclusive, 3, {0, 0, 0});
  EXPECT_THAT(binding.workers[2].cpus, ElementsAre(0, 8));
  EXPECT_THAT(binding.notes, ElementsAre("node 0 has 2 cores for 3 workers: they are not exclusive"));
}

TEST_F(NumaBinding, CoreComplexTakesTheLargestCacheFirstAndWrapsRound) {
  Machine uneven;
  uneven.node(0, "0-4");
  for (int cpu = 0; cpu < 5; ++cpu) uneven.cpu(cpu, 0, std::to_string(cpu), cpu < 2 ? "0-1" : "2-4");
  const Binding binding =
      bind_workers({NumaMode::core_complex, 3, {}}, *read_topology(uneven.root(), uneven.all(5)));
  EXPECT_THAT(binding.workers[0].cpus, ElementsAre(2, 3, 4));
  EXPECT_THAT(binding.workers[1].cpus, ElementsAre(0, 1));
  EXPECT_THAT(binding.workers[2].cpus, ElementsAre(2, 3, 4));
}

TEST_F(NumaBinding, K2_ADeviceWhoseNodeMayNotBeUsedFallsBackWithAReason) {
  allowed = {0, 1, 2, 3};
  const Binding binding = bound(NumaMode::node, 2, {3, 1});
  EXPECT_EQ(binding.workers[0], (WorkerCpus{{0, 1}, 0, false}));
  EXPECT_EQ(binding.workers[1], (WorkerCpus{{2, 3}, 1, true}));
  EXPECT_THAT(binding.notes,
              ElementsAre(HasSubstr("the device of local rank 0 is on node 3, of which no CPU may be used")));
}

}  // namespace
}  // namespace muster::agent
