#include "agent/logs/worker_log.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "agent/logs/collapsed_console.hpp"
#include "agent/logs/console.hpp"
#include "agent/logs/matched_lines.hpp"
#include "base/ranks.hpp"
#include "base/unique_fd.hpp"

namespace muster::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Starts muster_test_child with its output in the log's pipes.
pid_t start_child(const WorkerLog& log, const std::string& steps) {
  std::vector<std::string> words;
  std::istringstream stream(steps);
  for (std::string word; stream >> word;) words.push_back(word);
  const std::string program = MUSTER_BIN_DIR "/muster_test_child";
  std::vector<char*> arguments{const_cast<char*>(program.c_str())};
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int out = log.child_stdout_fd();
  const int err = log.child_stderr_fd();
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::dup2(out, 1) < 0 || ::dup2(err, 2) < 0) ::_exit(98);
    ::execv(program.c_str(), arguments.data());
    ::_exit(97);
  }
  return pid;
}

// What whoever started this test program left open for its children.
std::ptrdiff_t open_without_close_on_exec_above_2() {
  std::ptrdiff_t count = 0;
  for (int fd = 3; fd < 1024; ++fd) {
    const int flags = ::fcntl(fd, F_GETFD);
    if (flags >= 0 && !(flags & FD_CLOEXEC)) ++count;
  }
  return count;
}

struct WorkerLogTest : ::testing::Test {
  WorkerLogTest() {
    ::signal(SIGPIPE, SIG_IGN);
    std::string pattern = ::testing::TempDir() + "worker_log_XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    folder = pattern;
  }
  ~WorkerLogTest() override { std::filesystem::remove_all(folder); }

  WorkerLogOptions with_files() const {
    WorkerLogOptions options;
    options.out.file = folder / "rank-0" / "stdout.log";
    options.err.file = folder / "rank-0" / "stderr.log";
    return options;
  }

  WorkerLogOptions quiet() const {
    WorkerLogOptions options = with_files();
    options.out.to_console = options.err.to_console = false;
    return options;
  }

  // A console that is a file.
  std::shared_ptr<Console> file_console() {
    console_file.reset(::open((folder / "console").c_str(), O_CREAT | O_RDWR | O_APPEND | O_CLOEXEC, 0600));
    return std::make_shared<Console>(io.get_executor(), console_file.get(), console_file.get(),
                                     Console::Limits{});
  }

  // The worker has ended; runs the loop until the log has, and says whether it did.
  bool finish(WorkerLog& log, pid_t pid, Duration limit = 5s) {
    int status = 0;
    bool done = false;
    while (::waitpid(pid, &status, WNOHANG) == 0) {
      io.restart();
      io.run_one_for(10ms);  // its pipes are read meanwhile
    }
    log.finish(limit, [&] { done = true; });
    EXPECT_FALSE(done) << "never from inside finish";
    io.restart();
    const Instant deadline = std::chrono::steady_clock::now() + 20s;
    while (!done && std::chrono::steady_clock::now() < deadline) {
      io.restart();
      io.run_one_for(1s);
    }
    return done;
  }

  std::filesystem::path folder;
  boost::asio::io_context io{1};
  UniqueFd console_file;
};

TEST_F(WorkerLogTest, FilesHaveTheBytesAsWritten) {
  WorkerLog log(io.get_executor(), quiet());
  ASSERT_TRUE(log.open());
  const pid_t pid = start_child(log, "out 2 hello then out-part end then err 1 oh");
  log.started();
  ASSERT_TRUE(finish(log, pid));
  EXPECT_EQ(content(folder / "rank-0/stdout.log"), "hello 0\nhello 1\nend");
  EXPECT_EQ(content(log.stderr_path()), "oh 0\n");
  EXPECT_THAT(log.last_stderr_lines(), ElementsAre("oh 0"));
  EXPECT_EQ(log.dropped_bytes(), 0u);
}

TEST_F(WorkerLogTest, J7_AnExistingLogIsAppendedTo) {
  for (int round = 0; round < 2; ++round) {
    WorkerLog log(io.get_executor(), quiet());
    ASSERT_TRUE(log.open());
    const pid_t pid = start_child(log, "out 1 again");
    log.started();
    ASSERT_TRUE(finish(log, pid));
  }
  EXPECT_EQ(content(folder / "rank-0/stdout.log"), "again 0\nagain 0\n");
}

TEST_F(WorkerLogTest, NothingIsLostWhenTheWorkerIsKilled) {
  WorkerLog log(io.get_executor(), quiet());
  ASSERT_TRUE(log.open());
  const pid_t pid = start_child(log, "err 500 dying then signal KILL");
  log.started();
  ASSERT_TRUE(finish(log, pid));
  EXPECT_THAT(content(log.stderr_path()), HasSubstr("dying 499\n"));
  EXPECT_EQ(log.last_stderr_lines().size(), 30u);
  EXPECT_EQ(log.last_stderr_lines().back(), "dying 499");
}

TEST_F(WorkerLogTest, AGrandchildThatHoldsThePipeDelaysTheEndByTheLimitOnly) {
  WorkerLog log(io.get_executor(), quiet());
  ASSERT_TRUE(log.open());
  const std::string pidfile = folder / "grandchild";
  const pid_t pid =
      start_child(log, "out 3 kept then session-grandchild " + pidfile + " 20000 then await " + pidfile);
  log.started();
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(finish(log, pid, 100ms));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
  EXPECT_EQ(content(folder / "rank-0/stdout.log"), "kept 0\nkept 1\nkept 2\n");
  EXPECT_EQ(::kill(std::stoi(content(pidfile)), SIGKILL), 0);
}

TEST_F(WorkerLogTest, AFullDiskIsCountedAndStopsNothing) {
  std::filesystem::create_directories(folder / "rank-0");
  std::filesystem::create_symlink("/dev/full", folder / "rank-0/stdout.log");
  WorkerLogOptions options = with_files();
  options.console = file_console();
  WorkerLog log(io.get_executor(), options);
  ASSERT_TRUE(log.open());
  const pid_t pid = start_child(log, "out 20000 xxxxxxxxxxxxxxxxxxxx");
  log.started();
  ASSERT_TRUE(finish(log, pid));
  EXPECT_GT(log.dropped_bytes(), 400'000u);
  const std::string console = content(folder / "console");
  EXPECT_THAT(console, HasSubstr("xxxxxxxxxxxxxxxxxxxx 19999\n")) << "the console still has it";
  EXPECT_THAT(console, HasSubstr("stdout.log: No space left on device (ENOSPC)"));
}

TEST_F(WorkerLogTest, J1_LinesOfManyWorkersStayWhole) {
  auto console = file_console();
  std::vector<std::unique_ptr<WorkerLog>> logs;
  std::vector<pid_t> pids;
  for (int rank = 0; rank < 8; ++rank) {
    WorkerLogOptions options;
    options.console = console;
    options.out.prefix = options.err.prefix = LinePrefix("[" + std::to_string(rank) + "]:", {});
    logs.push_back(std::make_unique<WorkerLog>(io.get_executor(), options));
    ASSERT_TRUE(logs.back()->open());
    const std::string text(200, static_cast<char>('a' + rank));
    pids.push_back(start_child(*logs.back(), "out 2000 " + text + " then err 200 " + text));
    logs.back()->started();
  }
  for (std::size_t rank = 0; rank < logs.size(); ++rank) ASSERT_TRUE(finish(*logs[rank], pids[rank]));
  std::map<int, int> lines_of_rank;
  std::istringstream lines(content(folder / "console"));
  for (std::string line; std::getline(lines, line);) {
    const int rank = line.at(1) - '0';
    const std::string start =
        "[" + std::to_string(rank) + "]:" + std::string(200, static_cast<char>('a' + rank));
    ASSERT_EQ(line.substr(0, start.size()), start);
    ++lines_of_rank[rank];
  }
  for (int rank = 0; rank < 8; ++rank) EXPECT_EQ(lines_of_rank[rank], 2200);
}

TEST_F(WorkerLogTest, AConsoleThatNobodyReadsDoesNotStopTheWorker) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  WorkerLogOptions options = with_files();
  options.console = std::make_shared<Console>(io.get_executor(), writer.get(), writer.get(),
                                              Console::Limits{64 * 1024, 50ms});
  WorkerLog log(io.get_executor(), options);
  ASSERT_TRUE(log.open());
  const pid_t pid = start_child(log, "out 20000 a-line-of-output-that-goes-nowhere");
  log.started();
  ASSERT_TRUE(finish(log, pid));
  EXPECT_GT(options.console->dropped_lines(), 1000u);
  EXPECT_THAT(content(folder / "rank-0/stdout.log"), HasSubstr("nowhere 19999\n")) << "the file has it all";
}

TEST_F(WorkerLogTest, AWorkerThatIsAloneShowsItsPromptsAtOnce) {
  WorkerLogOptions options;
  options.console = file_console();
  options.whole_lines = false;
  WorkerLog log(io.get_executor(), options);
  ASSERT_TRUE(log.open());
  const std::string go = folder / "go";
  const pid_t pid = start_child(log, "out-part (Pdb) then await " + go + " then out-part c then err 1 end");
  log.started();
  const Instant deadline = std::chrono::steady_clock::now() + 20s;
  while (content(folder / "console") != "(Pdb)" && std::chrono::steady_clock::now() < deadline)
    io.run_one_for(10ms);
  EXPECT_EQ(content(folder / "console"), "(Pdb)");
  std::ofstream(go) << "";
  ASSERT_TRUE(finish(log, pid));
  EXPECT_THAT(log.last_stderr_lines(), ElementsAre("end 0"));
  EXPECT_THAT(content(folder / "console"), HasSubstr("(Pdb)c"));
}

TEST_F(WorkerLogTest, WithoutAFolderThereAreNoFilesButLastLines) {
  WorkerLogOptions options;
  options.out.to_console = options.err.to_console = false;
  WorkerLog log(io.get_executor(), options);
  ASSERT_TRUE(log.open());
  const pid_t pid = start_child(log, "err 2 kept");
  log.started();
  ASSERT_TRUE(finish(log, pid));
  EXPECT_TRUE(log.stderr_path().empty());
  EXPECT_THAT(log.last_stderr_lines(), ElementsAre("kept 0", "kept 1"));
}

TEST_F(WorkerLogTest, AFolderThatCannotBeMadeIsNamedAndStopsNothing) {
  std::ofstream(folder / "file") << "x";
  WorkerLogOptions options;
  options.out.file = folder / "file" / "rank-0" / "stdout.log";
  options.console = file_console();
  WorkerLog log(io.get_executor(), options);
  ASSERT_TRUE(log.open());
  const pid_t pid = start_child(log, "out 1 hello");
  log.started();
  ASSERT_TRUE(finish(log, pid));
  EXPECT_EQ(log.dropped_bytes(), 8u);
  const std::string console = content(folder / "console");
  EXPECT_THAT(console, HasSubstr((folder / "file/rank-0").string() +
                                 ": Not a directory (ENOTDIR); the job goes on, this log is lost\n"));
  EXPECT_THAT(console, HasSubstr("hello 0\n"));
  EXPECT_THAT(console, HasSubstr("8 bytes of this log are lost so far\n"));
}

TEST_F(WorkerLogTest, AStreamThatIsNotShownGoesToItsFileAlone) {
  WorkerLogOptions options = with_files();
  options.out.to_console = false;
  options.console = file_console();
  WorkerLog log(io.get_executor(), options);
  ASSERT_TRUE(log.open());
  const pid_t pid = start_child(log, "out 1 quiet then err 1 shown");
  log.started();
  ASSERT_TRUE(finish(log, pid));
  EXPECT_EQ(content(log.stdout_path()), "quiet 0\n");
  EXPECT_EQ(content(log.stderr_path()), "shown 0\n");
  EXPECT_EQ(content(folder / "console"), "shown 0\n");
}

TEST_F(WorkerLogTest, J7_OneFileForBothStreamsHasWholeLines) {
  WorkerLogOptions options = quiet();
  options.err.file = options.out.file;
  WorkerLog log(io.get_executor(), options);
  ASSERT_TRUE(log.open());
  const pid_t pid = start_child(log, "out-part begin then err 500 " + std::string(300, 'e') +
                                         " then out 500 " + std::string(300, 'o') + " then err-part end");
  log.started();
  ASSERT_TRUE(finish(log, pid));
  std::istringstream lines(content(options.out.file));
  std::map<std::size_t, int> lines_by_length;
  for (std::string line; std::getline(lines, line);) ++lines_by_length[line.size() / 100];
  EXPECT_EQ(lines_by_length[3], 1000) << "and the first of stdout has five bytes more";
  EXPECT_EQ(lines_by_length[0], 1) << "end";
  EXPECT_EQ(log.dropped_bytes(), 0u);
}

TEST_F(WorkerLogTest, MatchingLinesGoToOneMoreFileOfAllWorkers) {
  const auto matched = std::make_shared<MatchedLines>(*LineMatcher::of_regex("^bad.*[13]$"),
                                                      LogFile(folder / "round-1/matched.log", [](auto&) {}));
  ASSERT_TRUE(matched->open());
  for (const char* rank : {"0", "1"}) {
    WorkerLogOptions options = quiet();
    options.out.matched = options.err.matched = {matched};
    WorkerName name;
    name.rank = rank;
    options.matched_prefix = LinePrefix("{rank}: ", name);
    WorkerLog log(io.get_executor(), options);
    ASSERT_TRUE(log.open());
    const pid_t pid = start_child(log, "out 2 good then err 4 bad");
    log.started();
    ASSERT_TRUE(finish(log, pid));
  }
  EXPECT_EQ(content(folder / "round-1/matched.log"), "0: bad 1\n0: bad 3\n1: bad 1\n1: bad 3\n");
}

TEST_F(WorkerLogTest, J4_WithATerminalLinesComeAtOnceAndUnchanged) {
  WorkerLogOptions options = with_files();
  options.terminal = true;
  options.console = file_console();
  WorkerLog log(io.get_executor(), options);
  ASSERT_TRUE(log.open());
  EXPECT_EQ(::isatty(log.child_stdout_fd()), 1);
  EXPECT_EQ(::isatty(log.child_stderr_fd()), 1);
  const pid_t pid = start_child(log, "out 2000 line then err-part bar then err 1 end");
  log.started();
  ASSERT_TRUE(finish(log, pid));
  std::string expected;
  for (int line = 0; line < 2000; ++line) expected += "line " + std::to_string(line) + "\n";
  EXPECT_EQ(content(log.stdout_path()), expected) << "also what was written just before the end";
  EXPECT_EQ(content(log.stderr_path()), "barend 0\n");
}

TEST_F(WorkerLogTest, J6_EqualLinesOfManyWorkersAreOne) {
  const auto console = file_console();
  CollapsedConsole::Options collapse;
  collapse.window = 10s;
  collapse.shown_out = collapse.shown_err = {0, 1, 2, 3, 4, 5, 6, 7};
  collapse.prefix_of = [](Console::Stream, const std::set<int>& ranks) {
    return LinePrefix("[" + ranks_text(ranks) + "] ", {});
  };
  const auto collapsed = std::make_shared<CollapsedConsole>(io.get_executor(), console, collapse);
  std::vector<std::unique_ptr<WorkerLog>> logs;
  std::vector<pid_t> pids;
  for (int rank = 0; rank < 8; ++rank) {
    WorkerLogOptions options;
    options.local_rank = rank;
    options.console = console;
    options.collapsed = collapsed;
    logs.push_back(std::make_unique<WorkerLog>(io.get_executor(), options));
    ASSERT_TRUE(logs.back()->open());
    const std::string more = rank == 3 ? " then err 1 only-here" : "";
    pids.push_back(start_child(*logs.back(), "err 2 deprecated" + more));
    logs.back()->started();
  }
  for (std::size_t rank = 0; rank < logs.size(); ++rank) ASSERT_TRUE(finish(*logs[rank], pids[rank]));
  EXPECT_EQ(content(folder / "console"),
            "[ranks 0-7] deprecated 0\n[ranks 0-7] deprecated 1\n[rank 3] only-here 0\n");
}

TEST_F(WorkerLogTest, O3_AllDescriptorsCloseOnExec) {
  WorkerLog log(io.get_executor(), quiet());
  ASSERT_TRUE(log.open());
  EXPECT_TRUE(::fcntl(log.child_stdout_fd(), F_GETFD) & FD_CLOEXEC);
  EXPECT_TRUE(::fcntl(log.child_stderr_fd(), F_GETFD) & FD_CLOEXEC);
  const auto inherited = open_without_close_on_exec_above_2();
  const pid_t pid = start_child(log, "fds " + (folder / "fds").string());
  log.started();
  ASSERT_TRUE(finish(log, pid));
  const std::string open_there = "\n" + content(folder / "fds");
  EXPECT_THAT(open_there, HasSubstr("\n2\n"));
  EXPECT_EQ(std::count(open_there.begin(), open_there.end(), '\n'), 1 + 3 + inherited) << open_there;
}

}  // namespace
}  // namespace muster::agent
