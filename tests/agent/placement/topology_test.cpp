#include "agent/placement/topology.hpp"

#include "agent/placement/cpu_list.hpp"
#include "tests/agent/placement/machine.hpp"

namespace muster::agent {
namespace {

TEST(CpuList, ReadsAndWritesWhatTheKernelDoes) {
  EXPECT_THAT(parse_cpu_list("0-3,8\n"), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(parse_cpu_list("7,5,5"), ElementsAre(5, 7));
  EXPECT_THAT(parse_cpu_list(""), IsEmpty());
  EXPECT_THAT(parse_cpu_list("x,2,1-y"), ElementsAre(2));
  EXPECT_EQ(cpu_list_text({8, 0, 1, 2, 3}), "0-3,8");
  EXPECT_EQ(cpu_list_text({}), "");
}

TEST(TopologyTest, EachCpuHasItsNodeSocketCoreAndLastCache) {
  Machine machine;
  machine.two_sockets_of_two_nodes();
  const auto topology = read_topology(machine.root(), machine.all(16));
  ASSERT_TRUE(topology);
  ASSERT_EQ(topology->size(), 16u);
  EXPECT_EQ((*topology)[13], (Cpu{13, 2, 1, 5, 5}));
}

TEST(TopologyTest, WhatMayNotBeUsedIsLeftOut) {
  Machine machine;
  machine.two_sockets_of_two_nodes();
  const auto topology = read_topology(machine.root(), {1, 2, 99});
  ASSERT_TRUE(topology);
  ASSERT_EQ(topology->size(), 2u);
  EXPECT_EQ((*topology)[0].number, 1);
  EXPECT_EQ((*topology)[1].number, 2);
}

TEST(TopologyTest, AMachineWithoutNodesHasOne) {
  const Machine machine;
  const auto topology = read_topology(machine.root(), {0, 1});
  ASSERT_TRUE(topology);
  EXPECT_EQ((*topology)[1], (Cpu{1, 0, 0, 1, 1}));
}

TEST(TopologyTest, NodesOfOtherCpusAreNamedAsTheReason) {
  Machine machine;
  machine.node(0, "0-3");
  const auto topology = read_topology(machine.root(), {8});
  ASSERT_FALSE(topology);
  EXPECT_THAT(topology.error().sentence(), HasSubstr("sys/devices/system/node: none of the CPUs"));
}

TEST(TopologyTest, ThisProcessMayUseAtLeastOneCpu) { EXPECT_FALSE(allowed_cpus().empty()); }

}  // namespace
}  // namespace muster::agent
