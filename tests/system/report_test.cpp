// What is on the screen and on disk after a job.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/support/memory_cgroup.hpp"
#include "tests/system/muster_job.hpp"

namespace muster::test {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

std::string last_lines(const std::string& text, long count) {
  std::size_t at = text.size();
  for (long line = 0; line <= count && at != 0 && at != std::string::npos; ++line)
    at = text.rfind('\n', at - 1);
  return at == std::string::npos || at == 0 ? text : text.substr(at + 1);
}

TEST(Report, I2_TheFirstFailuresLastLinesAreAtTheVeryEnd) {
  const Job job;
  const auto ended = job.run("--nproc-per-node=8 --rdzv-id=traceback --log-dir=" + (job.folder / "logs"),
                             "err 200 noise then if-rank 5 then err 1 ValueError:line-42-of-train.py then "
                             "exit 1 then end then wait");
  EXPECT_EQ(ended.code, 1);
  const std::string end = last_lines(ended.err, 30);
  EXPECT_THAT(end, HasSubstr("ValueError:line-42-of-train.py"));
  EXPECT_THAT(end, HasSubstr("muster: job traceback FAILED: rank 5 on "));
  EXPECT_THAT(end, HasSubstr(job.folder / "logs/traceback/round-1/rank-5/stderr.log"));
  EXPECT_THAT(end, HasSubstr("stopped by muster (SIGTERM)"));
}

TEST(Report, I3_TheFirstLineAfterAFailureNamesTheCause) {
  const Job job;
  const auto ended = job.run("--nproc-per-node=4", "if-rank 3 then exit 1 then end then wait");
  const auto after_start = ended.err.substr(ended.err.find('\n', ended.err.find("round 1")) + 1);
  EXPECT_THAT(after_start.substr(0, after_start.find('\n')), HasSubstr("rank 3"));
}

TEST(Report, I5_AFaultBeforeAbortIsShown) {
  const Job job;
  const auto ended = job.run("", "err 1 fault:X then signal ABRT");
  EXPECT_EQ(ended.code, 134);
  EXPECT_THAT(last_lines(ended.err, 30), HasSubstr("fault:X 0"));
  EXPECT_THAT(last_lines(ended.err, 30), HasSubstr("SIGABRT"));
}

TEST(Report, I1_AnOutOfMemoryKillIsCalledThat) {
  const MemoryCgroup cgroup(200);
  if (!cgroup.made()) GTEST_SKIP() << "no memory cgroup can be made here";
  const Job job;
  const auto command = muster_command("--nproc-per-node=2", "if-rank 1 then eat 400 then end then wait");
  const auto ended = run(cgroup.inside(command), job.options());
  EXPECT_EQ(ended.code, 137);
  EXPECT_THAT(ended.err, HasSubstr("most likely out of memory"));
  EXPECT_THAT(ended.err, HasSubstr("its cgroup counted 1 OOM kill"));
  EXPECT_THAT(ended.err, HasSubstr("of 200 MiB)"));
}

TEST(Report, I1_AKillThatMusterDidNotSendIsSaidSo) {
  const Job job;
  const auto ended = job.run("", "signal KILL");
  EXPECT_EQ(ended.code, 137);
  EXPECT_THAT(ended.err, HasSubstr("killed by SIGKILL, not sent by muster"));
}

TEST(Report, TheErrorFilesMessageIsShown) {
  const Job job;
  const auto ended = job.run("", "error-file RuntimeError:from-the-error-file then exit 1");
  EXPECT_THAT(last_lines(ended.err, 30), HasSubstr("from-the-error-file"));
}

TEST(Report, I6_StatusJsonHasEveryWorker) {
  const Job job;
  ASSERT_EQ(job.run("--nproc-per-node=4 --rdzv-id=four --log-dir=" + (job.folder / "logs"),
                    "if-rank 1 then exit 3 then end then wait")
                .code,
            3);
  const auto status = nlohmann::json::parse(content(job.folder / "logs/four/status.json"));
  ASSERT_EQ(status["workers"].size(), 4u);
  for (const auto& worker : status["workers"]) {
    EXPECT_GT(worker["pid"].get<int>(), 0);
    EXPECT_GE(worker["ended_ms"].get<std::int64_t>(), worker["started_ms"].get<std::int64_t>());
    EXPECT_FALSE(worker["ended_by"].is_null());
    EXPECT_TRUE(worker["exit"].is_number() || worker["signal"].is_string());
  }
  EXPECT_EQ(status["reason"], "failed");
}

TEST(Report, J5_LogsLieWhereTheStartLineSays) {
  const Job job;
  const auto ended = job.run("--nproc-per-node=2", "out 1 hello then err 1 oh");
  ASSERT_EQ(ended.code, 0) << ended.err;
  const auto begin = ended.err.find("logs in ") + 8;
  const std::filesystem::path logs = ended.err.substr(begin, ended.err.find('\n', begin) - begin);
  for (const char* rank : {"rank-0", "rank-1"}) {
    EXPECT_EQ(content(logs / "round-1" / rank / "stdout.log"), "hello 0\n");
    EXPECT_EQ(content(logs / "round-1" / rank / "stderr.log"), "oh 0\n");
  }
  EXPECT_EQ(ended.out, "hello 0\nhello 0\n") << "raw lines on the console";
}

TEST(Report, NothingIsWrittenForDevNull) {
  const Job job;
  const auto ended = job.run("--log-dir=/dev/null", "out 1 hello");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(job.folder.path()), {}), 0);
  EXPECT_EQ(ended.out, "hello 0\n");
}

TEST(Report, AConsoleThatIsGoneStopsNothing) {
  const Job job;
  // "head -1" closes the pipe after the first line.
  const auto command = kMuster + " --rdzv-id=head --log-dir=" + (job.folder / "logs") + " " + kChild +
                       " out 20000 line | head -1";
  const auto ended = run({"/bin/sh", "-c", command}, job.options());
  EXPECT_EQ(ended.out, "line 0\n");
  ASSERT_TRUE(job.nothing_left(std::chrono::seconds(10)));
  EXPECT_THAT(content(job.folder / "logs/head/round-1/rank-0/stdout.log"), HasSubstr("line 19999\n"));
  EXPECT_THAT(content(job.folder / "logs/head/status.json"), HasSubstr("\"succeeded\""));
}

}  // namespace
}  // namespace muster::test
