// One worker fails, all are started again.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/system/muster_job.hpp"

namespace muster::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string variable(const std::string& environment, const std::string& name) {
  std::istringstream entries(environment);
  for (std::string entry; std::getline(entries, entry, '\0');)
    if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
  return "(not set)";
}

TEST(Restart, AFailureInTheFirstRoundIsMadeGoodByTheSecond) {
  const Job job;
  const auto ended = job.run(
      "--nproc-per-node=2 --max-restarts=3",
      "env " + (job.folder / "env-{round}-{rank}") + " then touch " + (job.folder / "wrote-{round}-{rank}") +
          " then if-rank 1 then if-round 1 then await " + (job.folder / "wrote-1-0") + " then exit 5");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("succeeded after 1 restart"));
  for (const char* rank : {"0", "1"}) {
    const std::string first = content(job.folder / ("env-1-" + std::string(rank)));
    const std::string second = content(job.folder / ("env-2-" + std::string(rank)));
    EXPECT_EQ(variable(first, "TORCHELASTIC_RESTART_COUNT"), "0");
    EXPECT_EQ(variable(second, "TORCHELASTIC_RESTART_COUNT"), "1");
    EXPECT_EQ(variable(second, "TORCHELASTIC_MAX_RESTARTS"), "3");
    EXPECT_EQ(variable(second, "MUSTER_ROUND"), "2");
    EXPECT_EQ(variable(second, "RANK"), rank);
  }
}

TEST(Restart, AllWorkersAreStoppedAndStartedAgain) {
  const Job job;
  const auto ended = job.run("--nproc-per-node=3 --max-restarts=1",
                             "touch " + (job.folder / "ran-{round}-{rank}") + " then if-round 1 then await " +
                                 (job.folder / "ran-1-0") + " then await " + (job.folder / "ran-1-1") +
                                 " then await " + (job.folder / "ran-1-2") +
                                 " then if-rank 2 then signal KILL then end then if-round 1 then wait");
  EXPECT_EQ(ended.code, 0) << ended.err;
  for (const char* name : {"ran-1-0", "ran-1-1", "ran-1-2", "ran-2-0", "ran-2-1", "ran-2-2"})
    EXPECT_TRUE(std::filesystem::exists(job.folder / name)) << name;
  EXPECT_TRUE(job.nothing_left());
}

TEST(Restart, TheBudgetIsUsedUpAndTheFirstFailuresCodeRemains) {
  const Job job;
  // Each round fails with another code, so that it does not look like a program that cannot start.
  const auto ended =
      job.run("--max-restarts=2 --log-dir " + (job.folder / "logs") + " --rdzv-id=budget",
              "if-round 1 then exit 11 then end then if-round 2 then exit 12 then end then exit 13");
  EXPECT_EQ(ended.code, 13) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("2 of 2 used"));
  const auto status = nlohmann::json::parse(content(job.folder / "logs/budget/status.json"));
  EXPECT_EQ(status["restarts"].size(), 2u);
  EXPECT_EQ(status["workers"].size(), 3u);
  EXPECT_EQ(status["workers"][0]["exit"], 11);
}

TEST(Restart, AWindowEndsTheJobBeforeTheWholeBudgetIsUsed) {
  const Job job;
  const auto ended =
      job.run("--max-restarts=9 --rdzv-conf=restart_window=2/10m --log-dir " + (job.folder / "logs"),
              "if-round 1 then exit 11 then end then if-round 2 then exit 12 then end then exit 13");
  EXPECT_EQ(ended.code, 13) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("muster: up to 9 restarts after failures, 2 within 10 min at most; "));
  EXPECT_THAT(ended.err, HasSubstr("2 restarts within 10 min are used"));
  EXPECT_THAT(ended.err, Not(HasSubstr("round 4")));
}

TEST(Restart, D20_BadDataEndATrainersJobAtOnce) {
  const Job job;
  const std::vector<std::string> command{
      kMuster,      "--nproc-per-node=2", "--max-restarts=3", MUSTER_BIN_DIR "/ddp_mnist",
      "--data-dir", "/nonexistent"};
  const auto missing = test::run(command, job.options());
  EXPECT_EQ(missing.code, 2) << missing.err;
  EXPECT_THAT(missing.err, AllOf(HasSubstr("/nonexistent: No such file or directory"),
                                 HasSubstr("it says itself that trying again would not help"),
                                 HasSubstr("0 of 3 used; no more, since rank "), Not(HasSubstr("round 2"))));
}

TEST(Restart, D20_AMetricsFileThatTakesNoMoreEndsATrainersJobAtOnceAndLosesNothing) {
  const Job job;
  const std::vector<std::string> command{kMuster,
                                         "--nproc-per-node=2",
                                         "--max-restarts=3",
                                         MUSTER_BIN_DIR "/ddp_mnist",
                                         "--max-steps=200",
                                         "--checkpoint-dir=" + (job.folder / "checkpoints"),
                                         "--metrics-file=/dev/full"};
  const auto full = test::run(command, job.options());
  EXPECT_EQ(full.code, 1) << full.err;
  EXPECT_THAT(full.err,
              AllOf(HasSubstr("--metrics-file /dev/full: cannot be written: No space left on device "
                              "(ENOSPC); training stopped after step 2, nothing is lost: it is saved"),
                    HasSubstr("0 of 3 used; no more, since rank "), Not(HasSubstr("round 2"))));
}

TEST(Restart, WithoutABudgetThereIsNone) {
  const Job job;
  const auto ended = job.run("", "touch " + (job.folder / "ran-{round}") + " then exit 4");
  EXPECT_EQ(ended.code, 4);
  EXPECT_FALSE(std::filesystem::exists(job.folder / "ran-2"));
}

TEST(Restart, J7_LogsOfEarlierRoundsStay) {
  const Job job;
  const auto ended = job.run("--max-restarts=1 --rdzv-id=rounds --log-dir=" + (job.folder / "logs"),
                             "out 1 hello then if-round 1 then exit 1");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(content(job.folder / "logs/rounds/round-1/rank-0/stdout.log"), "hello 0\n");
  EXPECT_EQ(content(job.folder / "logs/rounds/round-2/rank-0/stdout.log"), "hello 0\n");
}

}  // namespace
}  // namespace muster::test
