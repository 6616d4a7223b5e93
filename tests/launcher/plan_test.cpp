#include "launcher/plan.hpp"

#include <gmock/gmock.h>

namespace muster::launcher {
namespace {

Plan sample() {
  Plan plan;
  plan.run_id = "mnist";
  plan.node = "n1";
  plan.workers.number = 2;
  plan.max_restarts = 3;
  plan.graces = {std::chrono::seconds(30), std::chrono::seconds(30), std::chrono::seconds(30)};
  plan.run_folder = "/scratch/run/mnist";
  return plan;
}

TEST(StartLines, J5_NameJobPolicyAndLogs) {
  EXPECT_EQ(start_lines(sample()),
            "muster: job mnist, node n1: 2 workers here, this node alone\n"
            "muster: up to 3 restarts after failures; stop grace 30 s; logs in /scratch/run/mnist\n");
}

TEST(StartLines, J7_NameTheTemplateOfTheFilesWithItsVariables) {
  Plan plan = sample();
  plan.output.file = "${SCRATCH}/{rank}.log";
  plan.output.variable = [](std::string_view) { return std::optional<std::string>("/fast"); };
  EXPECT_NE(start_lines(plan).find("; logs in /fast/{rank}.log\n"), std::string::npos) << start_lines(plan);
  plan.output.file = "all/{rank}.log";
  EXPECT_NE(start_lines(plan).find("; logs in /scratch/run/mnist/all/{rank}.log\n"), std::string::npos);
}

TEST(StartLines, K5_SayHowTheNumberCameAbout) {
  Plan plan = sample();
  plan.workers = {1, "1 CPUs in the affinity mask, no tighter cgroup quota"};
  plan.max_restarts = 0;
  plan.run_folder.clear();
  EXPECT_EQ(start_lines(plan),
            "muster: job mnist, node n1: 1 worker here (1 CPUs in the affinity mask, no tighter cgroup "
            "quota), this "
            "node alone\n"
            "muster: no restart after a failure; stop grace 30 s; no logs are kept\n");
}

TEST(StartLines, H3_SayWhenExitCode0Counts) {
  Plan plan = sample();
  plan.expect_done = true;
  EXPECT_NE(start_lines(plan).find("after failures; exit code 0 counts after done() alone; stop grace 30 s"),
            std::string::npos)
      << start_lines(plan);
}

Plan with_others() {
  Plan plan = sample();
  plan.min_nodes = 2;
  plan.max_nodes = 4;
  plan.meeting = Meeting{};
  plan.meeting->endpoint = {"10.0.0.1", 29400};
  return plan;
}

TEST(StartLines, J5_SayWhereTheNodesMeet) {
  EXPECT_EQ(
      start_lines(with_others(), {"10.0.0.1", true}),
      "muster: job mnist, node n1 (10.0.0.1): 2 workers here, 2 to 4 nodes, rendezvous 10.0.0.1:29400 "
      "(hosted here)\n"
      "muster: up to 3 restarts after failures, 10 membership changes per hour; stop grace 30 s; logs in "
      "/scratch/run/mnist\n");
}

TEST(StartLines, J5_SayHowManyMembershipChangesThereMayBe) {
  Plan plan = with_others();
  plan.meeting->membership_changes.count = rendezvous::unlimited;
  EXPECT_NE(start_lines(plan).find("after failures, unlimited membership changes; stop"), std::string::npos);
  plan.meeting->membership_changes = {1, std::chrono::minutes(30)};
  EXPECT_NE(start_lines(plan).find("after failures, 1 membership change per 30 min; stop"),
            std::string::npos);
}

TEST(Warnings, A15_ALoopbackEndpointWithSeveralNodesIsWarnedOf) {
  Plan plan = with_others();
  plan.meeting->endpoint.host = "localhost";
  ASSERT_EQ(warnings_of(plan, true).size(), 1u);
  EXPECT_EQ(
      warnings_of(plan, true).front(),
      "the endpoint localhost:29400 is a loopback address: no other machine can reach it, so all 2 nodes "
      "must be here");
  plan.min_nodes = 1;
  EXPECT_TRUE(warnings_of(plan, true).empty());
}

TEST(Warnings, A18_OptionsWithoutEffectAreOneLine) {
  Plan plan = sample();
  EXPECT_TRUE(warnings_of(plan, false).empty());
  plan.without_effect = {"--master-addr", "--master-port"};
  ASSERT_EQ(warnings_of(plan, false).size(), 1u);
  EXPECT_EQ(warnings_of(plan, false).front(),
            "without effect here: --master-addr, --master-port; one node needs no place to meet others");
}

TEST(Warnings, LocalRanksThatNoWorkerHasAreOneLine) {
  Plan plan = sample();
  plan.workers.number = 2;
  plan.output.console_local_ranks = {0, 9};
  plan.output.tee = StreamMap{Streams::none, {{1, Streams::out}, {5, Streams::out}}};
  EXPECT_THAT(
      warnings_of(plan, false),
      ::testing::ElementsAre(
          "local ranks that no worker here has: --tee 5, --local-ranks-filter 9; those here are 0-1"));
}

TEST(Warnings, UnknownKeysAreOneLine) {
  Plan plan = with_others();
  plan.meeting->unknown_keys = {"read_timeout", "zoo"};
  ASSERT_EQ(warnings_of(plan, false).size(), 1u);
  EXPECT_EQ(warnings_of(plan, false).front(),
            "--rdzv-conf: unknown here, so without effect: read_timeout, zoo");
}

}  // namespace
}  // namespace muster::launcher
