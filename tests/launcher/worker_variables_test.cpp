#include "launcher/worker_variables.hpp"

#include <gmock/gmock.h>

#include "tests/launcher/environment_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace muster::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

Words inherited_with(const Words& words, Words inherited, std::map<std::string, std::string> variables = {}) {
  Words line = words;
  line.push_back("prog");
  const auto options = parse_command_line(line, environment_of(std::move(variables)));
  EXPECT_TRUE(options) << options.error().sentence();
  return options ? changed(inherited, options->variables) : Words{};
}

std::string refused(const Words& words) {
  Words line = words;
  line.push_back("prog");
  const auto options = parse_command_line(line, environment_of({}));
  EXPECT_FALSE(options);
  return options ? "" : options.error().sentence();
}

TEST(WorkerVariables, O1_AreAddedAndReplaceWhatIsInherited) {
  EXPECT_THAT(inherited_with({"--env", "B=2,3 = x", "--env=C="}, {"A=1", "B=1"}),
              ElementsAre("A=1", "B=2,3 = x", "C="));
  EXPECT_THAT(inherited_with({"--env=B=1", "--env=B=2"}, {}), ElementsAre("B=2"));
  EXPECT_THAT(inherited_with({}, {"A=1"}, {{"MUSTER_ENV", "B=2\nC=3\n"}}), ElementsAre("A=1", "B=2", "C=3"));
  EXPECT_THAT(inherited_with({"--env=D=4"}, {}, {{"MUSTER_ENV", "B=2"}}), ElementsAre("D=4"))
      << "the option in place of its variable";
}

TEST(WorkerVariables, O1_OfAFileComeBeforeThoseOfTheCommandLine) {
  test::TemporaryFolder folder;
  const auto file = folder.write("env", "# a comment\n\nA=1\nB=with = and # in it \r\n");
  EXPECT_THAT(inherited_with({"--env=A=9", "--env-file", file}, {}),
              ElementsAre("B=with = and # in it ", "A=9"));
  const auto broken = folder.write("broken", "A=1\nnonsense\n");
  EXPECT_EQ(refused({"--env-file=" + broken}),
            "--env-file: " + broken + ", line 2: 'nonsense' is not allowed; it takes NAME=VALUE");
  EXPECT_THAT(refused({"--env-file=/no/such"}), HasSubstr("--env-file: /no/such: No such file or directory"));
}

TEST(WorkerVariables, OfAFileThatNeverEndsNotMoreThanItsLimitIsRead) {
  EXPECT_EQ(refused({"--env-file=/dev/zero"}),
            "--env-file: /dev/zero: longer than 1 MiB; it takes a file of NAME=VALUE lines");
  EXPECT_THAT(refused({"--env-file=/"}), HasSubstr("--env-file: /: Is a directory (EISDIR)"));
}

TEST(WorkerVariables, ThoseOfTheConfigurationStayBesideThoseOfTheCommandLine) {
  test::TemporaryFolder folder;
  const auto file = folder.write("job.json", R"({"env": {"A": 1, "B": 2}})");
  EXPECT_THAT(inherited_with({"--config", file, "--env=B=3", "--env=C=4"}, {"B=0"}),
              ElementsAre("A=1", "B=3", "C=4"));
  EXPECT_THAT(inherited_with({"--config", file}, {}, {{"MUSTER_ENV", "A=9"}}), ElementsAre("B=2", "A=9"));
  const auto options = parse_command_line({"--config", file, "--env=B=3", "prog"}, environment_of({}));
  ASSERT_TRUE(options);
  EXPECT_THAT(options->values.at("--env"), ElementsAre("A=1", "B=3")) << "printed as it counts";
  const auto meeting =
      folder.write("meeting.json", R"({"rdzv-conf": {"join_timeout": 7, "store_port": 4711}})");
  const auto met = parse_command_line(
      {"--config", meeting, "--rdzv-conf=join_timeout=8", "--nnodes=2", "--rdzv-endpoint=a:1", "prog"},
      environment_of({}));
  ASSERT_TRUE(met) << met.error().sentence();
  EXPECT_EQ(met->meeting->times.join, std::chrono::seconds(8));
  EXPECT_EQ(met->store.ports.first, 4711) << "rdzv-conf as well";
  const auto broken = folder.write("broken.json", R"({"env": ["RANK=1"]})");
  EXPECT_THAT(refused({"--config", broken, "--env=A=1"}), HasSubstr(broken + ": env: 'RANK' is not allowed"));
}

TEST(WorkerVariables, P3_ScrubbedOnesAreNotInherited) {
  const Words inherited = {"SLURM_JOB_ID=7", "PATH=/bin", "SLURM_PROCID=0", "PMI_RANK=1", "NOSLURM_=x"};
  EXPECT_THAT(inherited_with({}, inherited), ::testing::ElementsAreArray(inherited))
      << "the default leaves them";
  EXPECT_THAT(inherited_with({"--scrub-env", "SLURM_*"}, inherited),
              ElementsAre("PATH=/bin", "PMI_RANK=1", "NOSLURM_=x"));
  EXPECT_THAT(inherited_with({"--scrub-env=SLURM_*, PMI_*", "--env=SLURM_JOB_ID=8"}, inherited),
              ElementsAre("PATH=/bin", "NOSLURM_=x", "SLURM_JOB_ID=8"));
}

TEST(WorkerVariables, WhatMusterGivesItselfIsRefused) {
  EXPECT_EQ(refused({"--env=RANK=3"}), "--env: 'RANK' is not allowed; each worker gets its own from muster");
  EXPECT_THAT(refused({"--env=novalue"}), HasSubstr("--env: 'novalue' is not allowed; it takes NAME=VALUE"));
  EXPECT_THAT(refused({"--env==x"}), HasSubstr("it takes NAME=VALUE"));
  EXPECT_THAT(refused({"--scrub-env="}), HasSubstr("--scrub-env: "));
}

TEST(WorkerVariables, O1_SecretsAreNotPrinted) {
  for (const char* name : {"WANDB_API_KEY", "HF_TOKEN", "db_password", "AWS_SECRET_ACCESS_KEY"})
    EXPECT_EQ(without_secret(std::string(name) + "=geheim"), std::string(name) + "=***");
  EXPECT_EQ(without_secret("LR=0.1"), "LR=0.1");
  EXPECT_THAT(refused({"--env=HF_TOKEN=***"}), HasSubstr("the value of HF_TOKEN was left out"));
  EXPECT_THAT(refused({"--env=bad name_TOKEN=geheim"}), Not(HasSubstr("geheim")));
}

}  // namespace
}  // namespace muster::launcher
