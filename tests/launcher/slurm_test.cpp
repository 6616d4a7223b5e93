#include "launcher/slurm.hpp"

#include <gmock/gmock.h>

#include "tests/launcher/environment_of.hpp"

namespace muster::launcher {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Slurm, P2_TaskVariablesThatDisagreeAreBothNamedWithTheConsequence) {
  const auto warnings =
      slurm_warnings({}, environment_of({{"SLURM_NTASKS", "1"}, {"SLURM_NTASKS_PER_NODE", "2"}}));
  EXPECT_THAT(warnings,
              ElementsAre(AllOf(HasSubstr("SLURM_NTASKS=1 and SLURM_NTASKS_PER_NODE=2 do not agree"),
                                HasSubstr("Slurm starts 1 launcher in all"))));
  EXPECT_THAT(slurm_warnings({}, environment_of({{"SLURM_NTASKS", "2"},
                                                 {"SLURM_NTASKS_PER_NODE", "1"},
                                                 {"SLURM_JOB_NUM_NODES", "4"}})),
              ElementsAre(HasSubstr("on 4 nodes")));
}

TEST(Slurm, P2_SeveralLaunchersOnANodeAreWarnedOf) {
  const std::map<std::string, std::string> batch = {
      {"SLURM_NTASKS", "8"}, {"SLURM_NTASKS_PER_NODE", "4"}, {"SLURM_JOB_NUM_NODES", "2"}};
  EXPECT_THAT(slurm_warnings({}, environment_of(batch)), IsEmpty()) << "muster runs once in the batch script";
  auto step = batch;
  step["SLURM_PROCID"] = "0";
  EXPECT_THAT(slurm_warnings({}, environment_of(step)), ElementsAre(HasSubstr("4 launchers on each node")));
}

TEST(Slurm, P2_MoreNodesThanSlurmGaveAreWarnedOf) {
  LauncherOptions options;
  options.min_nodes = options.max_nodes = 3;
  EXPECT_THAT(slurm_warnings(options, environment_of({{"SLURM_JOB_ID", "1"}, {"SLURM_NNODES", "2"}})),
              ElementsAre(HasSubstr("at least 3 nodes, and Slurm's job has 2")));
  EXPECT_THAT(slurm_warnings(options, environment_of({})), IsEmpty());
  EXPECT_THAT(slurm_warnings({}, environment_of({{"SLURM_NTASKS", "2"},
                                                 {"SLURM_NTASKS_PER_NODE", "1"},
                                                 {"SLURM_JOB_NUM_NODES", "2"},
                                                 {"SLURM_PROCID", "1"}})),
              IsEmpty());
  EXPECT_THAT(slurm_warnings({}, environment_of({{"SLURM_NTASKS", "many"}, {"SLURM_NTASKS_PER_NODE", "2"}})),
              IsEmpty());
}

}  // namespace
}  // namespace muster::launcher
