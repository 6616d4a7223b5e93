// What the workers print: on the console, and in files.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <thread>

#include "base/unique_fd.hpp"
#include "tests/system/muster_job.hpp"

namespace muster::test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// "Given 8 workers each writing 10k lines of 500 bytes, when teed, then every console line is whole and belongs to
// one rank; filter `0` shows only that rank."
TEST(Logs, J1_LinesOfEightWorkersAreWholeOnTheConsole) {
  const std::string text(490, 'x');
  for (const std::string filter : {"", " --local-ranks-filter=0"}) {
    const Job job;
    const auto ended = job.run("--nproc-per-node=8 --tee=3 --log-dir=" + (job.folder / "logs") + filter,
                               "out 10000 " + text);
    ASSERT_EQ(ended.code, 0) << ended.err;
    std::map<std::string, int> count_of_prefix;
    for (const std::string& line : lines_of(ended.out)) {
      ASSERT_EQ(line.substr(11, 491), text + " ") << line;
      ++count_of_prefix[line.substr(0, 11)];
    }
    EXPECT_EQ(count_of_prefix["[default0]:"], 10'000);
    EXPECT_EQ(count_of_prefix.size(), filter.empty() ? 8u : 1u);
  }
}

// torchrun's own test of --redirect (shortened) and --tee, without and with a template.
TEST(Logs, TorchrunsCommandPrintsTorchrunsPrefixes) {
  const Job job;
  const auto usual = job.run("--nproc-per-node=2 --redirect=3 --tee=3", "out 1 hello");
  EXPECT_THAT(lines_of(usual.out),
              ::testing::UnorderedElementsAre("[default0]:hello 0", "[default1]:hello 0"))
      << usual.err;
  EXPECT_THAT(usual.err, Not(HasSubstr("has no effect")));
  auto options = job.options();
  options.variables["TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"] = "[rank${rank}]: ";
  const auto given = run(muster_command("--nproc-per-node=2 --redirect=3 --tee=3", "out 1 hello"), options);
  EXPECT_THAT(lines_of(given.out), ::testing::UnorderedElementsAre("[rank0]: hello 0", "[rank1]: hello 0"));
}

TEST(Logs, RedirectedStreamsAreInTheFilesAlone) {
  const Job job;
  const auto ended =
      job.run("--nproc-per-node=2 -r 1:1 -t 0:2 --rdzv-id=r --log-dir=" + (job.folder / "logs"),
              "out 1 hello then err 1 oh");
  EXPECT_THAT(lines_of(ended.out), ::testing::ElementsAre("hello 0")) << "rank 0's";
  EXPECT_THAT(ended.err, AllOf(HasSubstr("[default0]:oh 0\n"), HasSubstr("\noh 0\n")));
  for (const char* rank : {"0", "1"})
    EXPECT_EQ(content(job.folder / ("logs/r/round-1/rank-" + std::string(rank) + "/stdout.log")),
              "hello 0\n");
}

TEST(Logs, J2_APrefixNamesHostRankAndTime) {
  const Job job;
  const auto ended = job.run(
      "--nproc-per-node=2 --ranks-filter=1 --log-line-prefix-template={host}:{rank}:{time}:", "out 1 hello");
  EXPECT_THAT(ended.out, ::testing::MatchesRegex("[^:]+:1:[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}:hello 0\n"));
}

double now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

// From the worker's write to ours reading it from muster's stdout, for each line.
std::vector<double> latencies_ms(const Job& job) {
  const std::string command = "TMPDIR=" + job.folder.path().string() + " " + kMuster +
                              " --nproc-per-node=2 --tee=1 --local-ranks-filter=0 " + kChild +
                              " stamps 100 20 2>&1";
  std::vector<double> latencies;
  FILE* out = ::popen(command.c_str(), "r");
  char line[1024];
  while (out && std::fgets(line, sizeof line, out)) {
    double sent_ms = 0;
    if (std::sscanf(line, "[default0]:stamp %lf", &sent_ms) == 1) latencies.push_back(now_ms() - sent_ms);
  }
  if (out) ::pclose(out);
  std::sort(latencies.begin(), latencies.end());
  return latencies;
}

// "Given a worker printing a time stamp each 100 ms unbuffered, when teed, then p99 console latency < 20 ms." A busy
// machine may keep either process waiting, so it has three tries, and a sanitizer's build ten times the span.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kLatencyMaxMs = 200;
#else
constexpr double kLatencyMaxMs = 20;
#endif
TEST(Logs, J3_ALineIsOnTheConsoleWithin20Milliseconds) {
  double p99_ms = 0;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const Job job;
    const auto latencies = latencies_ms(job);
    ASSERT_EQ(latencies.size(), 100u);
    p99_ms = latencies[98];
    if (p99_ms < kLatencyMaxMs) break;
  }
  EXPECT_LT(p99_ms, kLatencyMaxMs);
}

// "Given a Python worker printing once then sleeping 60 s, when redirected, then the line is in the file in < 1 s" of
// its start, for which a busy machine gets more.
TEST(Logs, J4_APythonWorkersLineIsInTheFileWhileItSleeps) {
  const Job job;
  const auto script = job.folder.write("sleeper", "print('here')\nimport time\ntime.sleep(60)\n");
  Program muster({kMuster, "--no-python", "-r", "3", "--rdzv-id=p", "--log-dir", job.folder / "logs",
                  "/usr/bin/python3", script},
                 job.options());
  const std::string file = job.folder / "logs/p/round-1/rank-0/stdout.log";
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (content(file) != "here\n" && std::chrono::steady_clock::now() < deadline) usleep(2000);
  EXPECT_EQ(content(file), "here\n");
  muster.signal(SIGTERM);
  EXPECT_EQ(muster.wait(20s).code, 143);
}

TEST(Logs, J4_WithAPtyAProgramWritesAsToATerminal) {
  const Job job;
  const auto script = job.folder.write("tty.py",
                                       "import os, sys\n"
                                       "print(sys.stdout.isatty(), sys.stderr.isatty(), os.isatty(0))\n"
                                       "print(os.get_terminal_size().columns > 0, file=sys.stderr)\n");
  const auto ended = run({kMuster, "--nproc-per-node=2", "--pty", script}, job.options());
  EXPECT_EQ(ended.out, "True True False\nTrue True False\n") << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("\nTrue\n"));
}

TEST(Logs, J6_AWarningOfAllWorkersIsOneLine) {
  const Job job;
  const auto ended = job.run("--nproc-per-node=8 --collapse=20s",
                             "err 1 deprecated then if-rank 2 then err 1 mine then end then out 1 done");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("\n[ranks 0-7]: deprecated 0\nmine 0\n"));
  EXPECT_EQ(ended.out, "[ranks 0-7]: done 0\n");
}

TEST(Logs, J7_FilesFollowTheTemplateAndARestartAppends) {
  const Job job;
  auto options = job.options();
  options.variables["JOB"] = "night";
  const auto command = muster_command(
      "--nproc-per-node=2 --max-restarts=1 --rdzv-id=t --log-dir=" + (job.folder / "logs") +
          " --log-file=${JOB}/{rank}.log --log-match=^bad|worse --duplicate-stderr-filters=oh,no",
      "out 1 hello then out 1 bad then err 1 oh then if-round 1 then if-rank 1 then exit 1 then end then "
      "await " +
          (job.folder / "logs/t/round-2/matched.log") + " then err 1 worse");
  const auto ended = run(command, options);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("logs in " + (job.folder / "logs/t/night/{rank}.log")));
  EXPECT_EQ(content(job.folder / "logs/t/night/1.log"),
            "hello 0\nbad 0\noh 0\nhello 0\nbad 0\noh 0\nworse 0\n");
  const std::string matched = content(job.folder / "logs/t/round-2/matched.log");
  EXPECT_THAT(matched, AllOf(HasSubstr("[default0]:bad 0\n"), HasSubstr("[default1]:worse 0\n")));
  EXPECT_EQ(count_lines(matched), 4);
  EXPECT_THAT(content(job.folder / "logs/t/round-2/filtered_stderr.log"), HasSubstr("[default1]:oh 0\n"));
}

// A file system of 64 KiB for the logs, on which the second round cannot even make its folders.
TEST(Logs, AFullDiskStopsNoWorkerAndNoRestart) {
  const Job job;
  const std::string disk = job.folder / "disk";
  std::filesystem::create_directory(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=64k") != 0)
    GTEST_SKIP() << "no tmpfs can be mounted here";
  const auto ended =
      job.run("--nproc-per-node=2 --max-restarts=1 --rdzv-id=full --log-dir=" + disk,
              "out 2000 " + std::string(90, 'x') + " then touch " + (job.folder / "done-{round}-{rank}") +
                  " then if-round 1 then await " + (job.folder / "done-1-0") + " then await " +
                  (job.folder / "done-1-1") + " then if-rank 1 then exit 3");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(count_lines(ended.out), 2 * 2 * 2000) << "the console has all of it";
  EXPECT_THAT(ended.err, HasSubstr("stdout.log: No space left on device (ENOSPC); the job goes on, "));
  EXPECT_THAT(ended.err, HasSubstr(" bytes of this log are lost so far\n"));
  EXPECT_THAT(ended.err, HasSubstr("succeeded after 1 restart"));
  EXPECT_EQ(::umount2(disk.c_str(), MNT_DETACH), 0);
}

TEST(Logs, ALimitOfFileSizesIsLikeAFullDisk) {
  const Job job;
  std::vector<std::string> command{"/bin/sh", "-c", "ulimit -f 40; exec \"$@\"", "sh"};
  const auto launcher =
      muster_command("--nproc-per-node=2 --rdzv-id=limited --log-dir=" + (job.folder / "logs"),
                     "out 2000 " + std::string(90, 'x'));
  command.insert(command.end(), launcher.begin(), launcher.end());
  const auto ended = run(command, job.options());
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(count_lines(ended.out), 2 * 2000) << "the console has all of it";
  EXPECT_THAT(ended.err, HasSubstr("stdout.log: File too large (EFBIG); the job goes on, "));
}

// A terminal that is stopped, or a pager that nobody scrolls.
TEST(Logs, AConsoleThatNobodyReadsStopsNoWorker) {
  const Job job;
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd unread(ends[0]);
  const UniqueFd writer(ends[1]);
  const std::string to_pipe =
      "exec \"$@\" >/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(writer.get()) + " 2>&1";
  std::vector<std::string> command{"/bin/sh", "-c", to_pipe, "sh"};
  for (auto& word : muster_command("--nproc-per-node=2 --rdzv-id=slow --log-dir=" + (job.folder / "logs"),
                                   "out 50000 " + std::string(90, 'x')))
    command.push_back(word);
  Program program(command, job.options());
  const auto status = job.folder / "logs/slow/status.json";
  const Instant deadline = std::chrono::steady_clock::now() + 60s;
  while (!std::filesystem::exists(status) && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(10ms);
  program.signal(SIGTERM);  // it waits for the reader
  EXPECT_EQ(program.wait(20s).code, 0);
  for (const char* rank : {"0", "1"})
    EXPECT_EQ(
        count_lines(content(job.folder / ("logs/slow/round-1/rank-" + std::string(rank) + "/stdout.log"))),
        50'000);
  EXPECT_THAT(content(status), HasSubstr("\"succeeded\""));
  EXPECT_THAT(content(status), Not(HasSubstr("\"lost_console_lines\": 0\n")));
}

// "Given console filter rank 0 and rank 1 failing, when it ends, then rank 1's last lines are on the console."
TEST(Report, I7_AFailuresLastLinesAreShownThoughItsRankIsFiltered) {
  const Job job;
  const auto ended = job.run("--nproc-per-node=2 --ranks-filter=0 -r 3",
                             "if-rank 1 then err 3 the-cause then exit 1 then end then wait");
  EXPECT_EQ(ended.code, 1);
  const auto report = ended.err.find("FAILED: rank 1");
  ASSERT_NE(report, std::string::npos) << ended.err;
  EXPECT_THAT(ended.err.substr(0, report), Not(HasSubstr("the-cause")));
  EXPECT_THAT(ended.err.substr(report), HasSubstr("\n      the-cause 2\n"));
}

}  // namespace
}  // namespace muster::test
