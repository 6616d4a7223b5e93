#include "launcher/dry_run.hpp"

#include <gmock/gmock.h>

#include "tests/launcher/environment_of.hpp"

namespace muster::launcher {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

std::string dry_run(const Words& words, const Words& inherited = {"PATH=/bin", "SLURM_JOB_ID=7"},
                    const ExpectedPlace& place = {}, const Placement& placement = {}) {
  const auto options = parse_command_line(words, environment_of({{"PET_MAX_RESTARTS", "2"}}));
  EXPECT_TRUE(options) << options.error().sentence();
  if (!options) return "";
  Target target{options->program, "found on PATH"};
  WorkerCount workers{options->workers.number, ""};
  Plan plan = make_plan(*options, target, workers, 8, "mnist");
  plan.node = "n1";
  plan.run_folder = "/logs/mnist";
  plan.placement = placement;
  return dry_run_text(*options, plan, place, inherited);
}

TEST(DryRun, OneNodeIsKnownWhole) {
  const auto text =
      dry_run({"--nproc-per-node=2", "--rdzv-id=mnist", "/bin/prog", "a b", "out-${local_rank}"});
  EXPECT_THAT(text, HasSubstr("muster: job mnist, node n1: 2 workers here, this node alone\n"));
  EXPECT_THAT(text,
              HasSubstr("muster: up to 2 restarts after failures; stop grace 30 s; logs in /logs/mnist\n"));
  EXPECT_THAT(text, HasSubstr("settings    --nproc-per-node 2, on the command line\n"));
  EXPECT_THAT(text, HasSubstr("            --max-restarts 2, by PET_MAX_RESTARTS\n"));
  EXPECT_THAT(text, HasSubstr("worker 1   /bin/prog 'a b' out-1\n"));
  EXPECT_THAT(text, HasSubstr("  RANK=1\n"));
  EXPECT_THAT(text, HasSubstr("  WORLD_SIZE=2\n"));
  EXPECT_THAT(text, HasSubstr("  MASTER_PORT=<a free port>\n"));
  EXPECT_THAT(text, HasSubstr("  OMP_NUM_THREADS=4\n"));
  EXPECT_THAT(text, HasSubstr("  TORCHELASTIC_ERROR_FILE=/logs/mnist/round-1/rank-1/error.json\n"));
  EXPECT_THAT(text, Not(HasSubstr("PATH=/bin")));
  EXPECT_THAT(text, HasSubstr("binding     none: "));
}

TEST(DryRun, K2_K3_NamesEachWorkersCpusAndDevices) {
  Placement placement;
  placement.workers = {{{0, 1, 2}, "0"}, {{3, 5}, "1"}};
  const auto text = dry_run({"--nproc-per-node=2", "/bin/prog"}, {}, {}, placement);
  EXPECT_THAT(text, HasSubstr("binding     local rank 0: CPUs 0-2; local rank 1: CPUs 3,5\n"));
  EXPECT_THAT(text, AllOf(HasSubstr("  CUDA_VISIBLE_DEVICES=0\n"), HasSubstr("  CUDA_VISIBLE_DEVICES=1\n")));
}

TEST(DryRun, OfSeveralNodesTheRoundsNumbersAreOpen) {
  const auto text =
      dry_run({"--nnodes=2", "--rdzv-endpoint=10.0.0.1", "--rdzv-conf=store_port=6000", "/bin/prog"}, {},
              {"10.0.0.1", true, false, "10.0.0.1 is an address of this machine"});
  EXPECT_THAT(
      text, HasSubstr("rendezvous  10.0.0.1:29400, hosted here unless a daemon answers there; 10.0.0.1 is an "
                      "address of this machine\n"));
  EXPECT_THAT(text, AllOf(HasSubstr("  RANK=<the round's>\n"), HasSubstr("  LOCAL_RANK=0\n")));
  EXPECT_THAT(text, AllOf(HasSubstr("  MASTER_ADDR=10.0.0.1\n"), HasSubstr("  MASTER_PORT=6000\n")));
}

TEST(DryRun, P3_SaysWhatIsScrubbedAndAddedAndNoSecret) {
  const auto text = dry_run({"--scrub-env=SLURM_*", "--env=A=1", "--env=HF_TOKEN=geheim", "/bin/prog"});
  EXPECT_THAT(text, HasSubstr("inherited   1 variable, 1 scrubbed: SLURM_JOB_ID\n"));
  EXPECT_THAT(text, AllOf(HasSubstr("  A=1\n"), HasSubstr("  HF_TOKEN=***\n"), Not(HasSubstr("geheim"))));
}

}  // namespace
}  // namespace muster::launcher
