#include "agent/process/spawn.hpp"

#include <fcntl.h>

#include <cerrno>
#include <set>
#include <sstream>

#include "agent/process/proc_files.hpp"
#include "base/unique_fd.hpp"
#include "tests/agent/process/processes.hpp"

namespace muster::agent {
namespace {

class Spawn : public Processes {
 protected:
  // The child's own view: a line "SigBlk:\t0000000000000000" of /proc/self/status.
  std::string status_line(const std::string& name) {
    SpawnRequest wanted;
    wanted.executable = "/bin/cat";
    wanted.arguments = {"/proc/self/status"};
    const UniqueFd out(::open(path("status").c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600));
    wanted.stdout_fd = out.get();
    EXPECT_EQ(end_of(wanted), ExitCause::exited(0));
    std::istringstream lines(read_file(path("status")));
    for (std::string line; std::getline(lines, line);)
      if (line.rfind(name + ":\t", 0) == 0) return line.substr(name.size() + 2);
    return "no such line";
  }
};

TEST_F(Spawn, AMissingProgramGivesItsErrnoAndLeavesNoProcess) {
  SpawnRequest wanted = request({});
  wanted.executable = path("nothing");
  const std::vector<pid_t> children_before = own_children();
  const auto pid = spawn(io.get_executor(), wanted);
  ASSERT_FALSE(pid);
  EXPECT_EQ(pid.error().error_number, ENOENT);
  EXPECT_THAT(pid.error().sentence(), ::testing::HasSubstr(path("nothing") + ": No such file"));
  EXPECT_EQ(own_children(), children_before);
}

TEST_F(Spawn, AFileThatIsNoProgramGivesItsErrno) {
  std::ofstream(path("data")) << "text";
  SpawnRequest wanted = request({});
  wanted.executable = path("data");
  EXPECT_EQ(spawn(io.get_executor(), wanted).error().error_number, EACCES);
  ::chmod(path("data").c_str(), 0700);
  EXPECT_EQ(spawn(io.get_executor(), wanted).error().error_number, ENOEXEC);
}

TEST_F(Spawn, AFailedExecDoesNotFlushTheAgentsBuffersASecondTime) {
  std::FILE* file = std::fopen(path("buffered").c_str(), "w");
  std::fputs("once", file);
  SpawnRequest wanted = request({});
  wanted.executable = path("nothing");
  EXPECT_FALSE(spawn(io.get_executor(), wanted));
  std::fclose(file);
  EXPECT_EQ(read_file(path("buffered")), "once");
}

TEST_F(Spawn, ArgumentsAndEnvironmentArriveExactly) {
  SpawnRequest wanted = request({"env", path("environment")});
  wanted.environment = {"A=1", "B=two words", "C="};
  EXPECT_EQ(end_of(wanted), ExitCause::exited(0));
  EXPECT_EQ(read_file(path("environment")), std::string("A=1\0B=two words\0C=\0", 19));
}

TEST_F(Spawn, O3_WorkersHaveOnlyDescriptors0To2) {
  const int leaked_low = ::open("/dev/null", O_RDONLY);
  const int leaked_high = ::fcntl(leaked_low, F_DUPFD, 500);
  EXPECT_EQ(end_of(request({"fds", path("descriptors")})), ExitCause::exited(0));
  std::istringstream lines(read_file(path("descriptors")));
  std::set<int> seen;
  for (int fd = 0; lines >> fd;) seen.insert(fd);
  EXPECT_EQ(seen, (std::set<int>{0, 1, 2}));
  ::close(leaked_low);
  ::close(leaked_high);
}

TEST_F(Spawn, StandardDescriptorsAreTheGivenOnes) {
  const UniqueFd out(::open(path("out").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  const UniqueFd error(::open(path("err").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  SpawnRequest wanted = request({"out-part", "to out", "then", "err-part", "to err"});
  wanted.stdout_fd = out.get();
  wanted.stderr_fd = error.get();
  EXPECT_EQ(end_of(wanted), ExitCause::exited(0));
  EXPECT_EQ(read_file(path("out")), "to out");
  EXPECT_EQ(read_file(path("err")), "to err");
}

TEST_F(Spawn, StandardDescriptorsMayBeCrossed) {
  const UniqueFd out(::open(path("out").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  SpawnRequest wanted = request({"out-part", "a", "then", "err-part", "b"});
  wanted.stdout_fd = STDERR_FILENO;
  wanted.stderr_fd = out.get();
  EXPECT_EQ(end_of(wanted), ExitCause::exited(0));
  EXPECT_EQ(read_file(path("out")), "b");
}

TEST_F(Spawn, F10_TheMaskIsEmptyAndDispositionsAreDefaultWhateverTheAgentHas) {
  sigset_t blocked;
  ::sigemptyset(&blocked);
  for (const int number : {SIGTERM, SIGINT, SIGCHLD, SIGUSR1}) ::sigaddset(&blocked, number);
  ::pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGUSR2, [](int) {});
  EXPECT_EQ(status_line("SigBlk"), "0000000000000000");
  EXPECT_EQ(status_line("SigIgn"), "0000000000000000");
  EXPECT_EQ(status_line("SigCgt"), "0000000000000000");
  ::signal(SIGPIPE, SIG_DFL);
  ::signal(SIGINT, SIG_DFL);
  ::signal(SIGUSR2, SIG_DFL);
  ::pthread_sigmask(SIG_UNBLOCK, &blocked, nullptr);
}

TEST_F(Spawn, F1_AnIgnoredHangUpStaysIgnored) {
  ::signal(SIGHUP, SIG_IGN);
  EXPECT_EQ(status_line("SigIgn"), "0000000000000001");
  ::signal(SIGHUP, SIG_DFL);
}

TEST_F(Spawn, G6_EachWorkerLeadsItsOwnProcessGroup) {
  const pid_t pid = start(request({"wait"}));
  auto worker = WorkerProcess::adopt(io.get_executor(), pid);
  EXPECT_EQ(::getpgid(pid), pid);
  EXPECT_NE(::getpgrp(), pid);
  EXPECT_EQ(::getsid(pid), ::getsid(0));
}

}  // namespace
}  // namespace muster::agent
