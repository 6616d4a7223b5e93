// A single worker and the terminal: each test plays the shell on a pseudo-terminal.
#include <fcntl.h>
#include <pty.h>
#include <sys/wait.h>
#include <termios.h>

#include "agent/agent.hpp"
#include "base/unique_fd.hpp"
#include "tests/agent/job.hpp"

namespace muster::agent {
namespace {

class AgentTerminalTest : public AgentTest {
 protected:
  /// An agent as the foreground job of a terminal of its own, with one worker.
  using RunAgent = std::function<int()>;
  pid_t start_in_terminal(
      const std::string& script,
      const std::function<int(RunAgent)>& as = [](const RunAgent& agent) { return agent(); }) {
    options.supervisor.offer.local_workers = 1;
    options.workers.executable = "/bin/sh";
    int terminal = -1;
    const pid_t pid = ::forkpty(&terminal, nullptr, nullptr, nullptr);
    if (pid == 0) ::_exit(as([&] { return run({"-c", script}).exit_code; }));
    terminal_ = UniqueFd(terminal);
    return pid;
  }
  void type(const std::string& keys) {
    EXPECT_EQ(::write(terminal_.get(), keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }
  pid_t foreground() const { return ::tcgetpgrp(terminal_.get()); }
  bool worker_reads_terminal() const {
    return read_file("/proc/" + std::to_string(foreground()) + "/comm") == "sh\n";
  }
  int exit_code_of_agent(pid_t pid) {
    ::fcntl(terminal_.get(), F_SETFL, O_NONBLOCK);
    int status = 0;
    EXPECT_TRUE(comes_true([&] {
      char output[4096];  // what nobody reads would hold the agent's last lines
      while (::read(terminal_.get(), output, sizeof output) > 0) continue;
      return ::waitpid(pid, &status, WNOHANG) == pid;
    }));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  UniqueFd terminal_;
};

TEST_F(AgentTerminalTest, AWorkerThatReadsFromTheTerminalGetsItAndItsInput) {
  const pid_t agent = start_in_terminal("read line; echo $line > " + path("answer"));
  ASSERT_TRUE(comes_true([&] { return worker_reads_terminal(); }));
  type("continue\n");
  EXPECT_EQ(exit_code_of_agent(agent), 0);
  EXPECT_EQ(read_file(path("answer")), "continue\n");
}

TEST_F(AgentTerminalTest, F7_CtrlCInAWorkerThatHasTheTerminalIsTheUsersStop) {
  const pid_t agent = start_in_terminal("read line");
  ASSERT_TRUE(comes_true([&] { return worker_reads_terminal(); }));
  type("\x03");
  EXPECT_EQ(exit_code_of_agent(agent), 128 + SIGINT);
}

TEST_F(AgentTerminalTest, CtrlCReachesTheAgentWhileNoWorkerAskedForTheTerminal) {
  const pid_t agent =
      start_in_terminal("trap 'exit 3' INT; : > " + path("ready") + "; while :; do sleep 0.01; done");
  ASSERT_TRUE(comes_true([&] { return std::filesystem::exists(path("ready")); }));
  EXPECT_EQ(foreground(), agent);
  type("\x03");
  EXPECT_EQ(exit_code_of_agent(agent), 128 + SIGINT);
}

// The forked shell runs the agent as a job and waits for it as shells do.
TEST_F(AgentTerminalTest, CtrlZStopsTheJobAndTheShellContinuesIt) {
  const pid_t shell = start_in_terminal("read line; echo $line > " + path("answer"), [this](auto run_agent) {
    ::signal(SIGTTOU, SIG_IGN);
    const pid_t agent = ::fork();
    if (agent == 0) {
      ::setpgid(0, 0);
      ::tcsetpgrp(STDIN_FILENO, ::getpid());
      ::signal(SIGTTOU, SIG_DFL);
      ::_exit(run_agent());
    }
    int status = 0;
    while (::waitpid(agent, &status, WUNTRACED) == agent && WIFSTOPPED(status)) {
      ::tcsetpgrp(STDIN_FILENO, ::getpgrp());
      std::ofstream(path("stopped")) << "";
      comes_true([&] { return std::filesystem::exists(path("go on")); });
      ::tcsetpgrp(STDIN_FILENO, agent);
      ::kill(-agent, SIGCONT);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  });
  ASSERT_TRUE(comes_true([&] { return worker_reads_terminal(); }));
  type("\x1a");
  ASSERT_TRUE(comes_true([&] { return std::filesystem::exists(path("stopped")); }));
  EXPECT_EQ(foreground(), shell);
  std::ofstream(path("go on")) << "";
  ASSERT_TRUE(comes_true([&] { return worker_reads_terminal(); }));
  type("again\n");
  EXPECT_EQ(exit_code_of_agent(shell), 0);
  EXPECT_EQ(read_file(path("answer")), "again\n");
}

}  // namespace
}  // namespace muster::agent
