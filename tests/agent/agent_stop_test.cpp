// Jobs that are ended: by signals, by graces, by the death of the agent.
#include "agent/agent.hpp"

#include <sys/ptrace.h>

#include "tests/agent/job.hpp"

namespace muster::agent {
namespace {

class AgentStopTest : public AgentTest {
 protected:
  /// Calls `what` once, when both workers have left their mark.
  std::function<void()> when_ready(std::function<void()> what) {
    return [this, what = std::move(what), called = false]() mutable {
      if (called || !std::filesystem::exists(path("ready-0")) || !std::filesystem::exists(path("ready-1")))
        return;
      called = true;
      what();
    };
  }
};

TEST_F(AgentStopTest, F9_TermEndsTheJobAsPreemptedWith143) {
  const AgentResult result = run({"exit-on-term", "5", "then", "touch", path("ready-{rank}"), "then", "wait"},
                                 when_ready([] { ::kill(::getpid(), SIGTERM); }));
  EXPECT_EQ(result.exit_code, 128 + SIGTERM);
  EXPECT_EQ(result.stop_signal, SIGTERM);
  EXPECT_EQ(result.outcome.kind, rendezvous::OutcomeKind::preempted);
  for (const WorkerRecord& record : result.workers)
    EXPECT_EQ(sentence_of(record), "exited with code 5 after muster asked it to stop");
}

TEST_F(AgentStopTest, F6_TheSameSignalReachesTheWorkers) {
  for (const int number : {SIGINT, SIGQUIT, SIGHUP}) {
    for (const char* name : {"ready-0", "ready-1"}) std::filesystem::remove(path(name));
    const AgentResult result = run({"touch", path("ready-{rank}"), "then", "wait"},
                                   when_ready([number] { ::kill(::getpid(), number); }));
    EXPECT_EQ(result.exit_code, 128 + number);
    EXPECT_EQ(result.outcome.kind, rendezvous::OutcomeKind::stopped);
    for (const WorkerRecord& record : result.workers)
      EXPECT_EQ(sentence_of(record), "was killed by " + signal_name(number) + ", sent by muster");
  }
}

TEST_F(AgentStopTest, F1_AHangUpThatIsIgnoredAtEntryChangesNothing) {
  ::signal(SIGHUP, SIG_IGN);
  const AgentResult result =
      run({"touch", path("ready-{rank}"), "then", "await", path("go")}, when_ready([&] {
            ::kill(::getpid(), SIGHUP);
            for (const pid_t pid : own_children()) ::kill(pid, SIGHUP);
            std::ofstream(path("go")) << "";
          }));
  ::signal(SIGHUP, SIG_DFL);
  EXPECT_EQ(result.exit_code, 0);
}

TEST_F(AgentStopTest, ASignalWhileNoRoundHasFormedEndsAtOnce) {
  policy.min_nodes = policy.max_nodes = 2;
  bool sent = false;
  const AgentResult result = run({"wait"}, [&] {
    if (!std::exchange(sent, true)) ::kill(::getpid(), SIGINT);
  });
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_TRUE(result.workers.empty());
}

TEST_F(AgentStopTest, AWorkerThatIgnoresTermIsKilledAfterTheGrace) {
  options.supervisor.graces.restart = 100ms;
  const AgentResult result =
      run({"if-rank", "1", "then", "await", path("ready-0"), "then", "exit", "7", "then", "end", "then",
           "ignore", "TERM", "then", "touch", path("ready-0"), "then", "wait"});
  EXPECT_EQ(result.exit_code, 7);
  EXPECT_EQ(sentence_of(result.workers[0]), "was killed by SIGKILL, sent by muster");
  EXPECT_THAT(said, HasSubstr("did not end within 0.1 s"));
}

TEST_F(AgentStopTest, ASecondSignalShortensTheGrace) {
  options.supervisor.graces.hurried = 50ms;
  const auto before = std::chrono::steady_clock::now();
  int sent = 0;
  Instant next{};
  const AgentResult result =
      run({"ignore", "INT", "then", "touch", path("ready-{rank}"), "then", "wait"}, [&] {
        const bool ready =
            std::filesystem::exists(path("ready-0")) && std::filesystem::exists(path("ready-1"));
        if (!ready || sent == 2 || std::chrono::steady_clock::now() < next) return;
        ++sent;
        ::kill(::getpid(), SIGINT);
        next = std::chrono::steady_clock::now() + 200ms;  // sooner it would be the same one
      });
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_LT(std::chrono::steady_clock::now() - before, 5s);
  EXPECT_EQ(sentence_of(result.workers[0]), "was killed by SIGKILL, sent by muster");
}

TEST_F(AgentStopTest, F5_WhatADyingMainProcessLeavesHasTheSignalAndTheRestOfTheGrace) {
  // The shell dies of the signal at once; its program saves, and hears of the signal once.
  options.workers.executable = "/bin/sh";
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    for (const char* name : {"ready-0", "ready-1", "saved-0", "saved-1"}) std::filesystem::remove(path(name));
    const std::string held = signal_name(number);
    const std::string program = child_program + " hold " + held + " then touch " + path("ready-{rank}") +
                                " then take " + held + " then sleep 100 then no-second " + held +
                                " then touch " + path("saved-{rank}");
    const AgentResult result =
        run({"-c", program + "; exit 9"}, when_ready([number] { ::kill(::getpid(), number); }));
    EXPECT_EQ(result.exit_code, 128 + number);
    EXPECT_TRUE(std::filesystem::exists(path("saved-0")) && std::filesystem::exists(path("saved-1"))) << held;
  }
}

TEST_F(AgentStopTest, F5_WhatIsLeftIsKilledWithTheGraceToo) {
  options.workers.executable = "/bin/sh";
  options.supervisor.graces.stop = 200ms;
  const AgentResult result = run({"-c", child_program + " ignore TERM then touch " + path("ready-{rank}") +
                                            " then pid " + path("pid-{rank}") + " then wait; exit 9"},
                                 when_ready([] { ::kill(::getpid(), SIGTERM); }));
  EXPECT_EQ(result.exit_code, 128 + SIGTERM);
  EXPECT_FALSE(alive(pid_in("pid-0")));
  EXPECT_EQ(sentence_of(result.workers[0]), "was killed by SIGTERM, sent by muster");
  const std::string who = "pid " + read_file(path("pid-0")) + " (" + child_program.substr(0, 60);
  EXPECT_THAT(said, HasSubstr("rank 0 (local 0, pid " + std::to_string(result.workers[0].pid) +
                              ") has ended, but what it left behind, " + who));
  EXPECT_THAT(said, ::testing::Not(HasSubstr("workers did not end")));
  EXPECT_THAT(result.workers[0].killed_rest, HasSubstr(who));
}

TEST_F(AgentStopTest, F5_WhatLeftItsGroupHasTheGraceToo) {
  options.workers.executable = "/bin/sh";
  const AgentResult result =
      run({"-c", "setsid " + child_program + " hold TERM then touch " + path("ready-{rank}") +
                     " then take TERM then sleep 100 then no-second TERM then touch " + path("saved-{rank}") +
                     "; exit 9"},
          when_ready([] { ::kill(::getpid(), SIGTERM); }));
  EXPECT_EQ(result.exit_code, 128 + SIGTERM);
  EXPECT_TRUE(std::filesystem::exists(path("saved-0")));
}

TEST_F(AgentStopTest, F5_AWorkerThatFailsByItselfLeavesNothingBehindForAMoment) {
  const AgentResult result = run({"grandchild", path("helper-{rank}"), "600000", "then", "exit", "7"});
  EXPECT_EQ(result.exit_code, 7);
}

TEST_F(AgentStopTest, I3_WhoFailedByItselfAtTheSameMomentIsNotSaidToBeStopped) {
  // Both have ended before the agent looks at either.
  const AgentResult result = run({"pid", path("pid-{rank}"), "then", "touch", path("ready-{rank}"), "then",
                                  "await", path("go"), "then", "exit", "3"},
                                 when_ready([this] {
                                   std::ofstream(path("go")) << "";
                                   for (const char* name : {"pid-0", "pid-1"})
                                     EXPECT_TRUE(comes_true([&] { return !alive(pid_in(name)); }));
                                 }));
  EXPECT_EQ(result.exit_code, 3);
  for (const WorkerRecord& record : result.workers) EXPECT_EQ(sentence_of(record), "exited with code 3");
}

TEST_F(AgentStopTest, F10_AWarningOfABatchSystemReachesThoseThatMindItAndEndsNobody) {
  for (const int number : {SIGUSR1, SIGUSR2}) {
    for (const char* name : {"ready-0", "ready-1", "heard"}) std::filesystem::remove(path(name));
    const std::string name = signal_name(number);
    const AgentResult result =
        run({"if-rank",       "0",     "then",         "catch", name,    "then",        "touch",
             path("ready-0"), "then",  "await-caught", "then",  "touch", path("heard"), "then",
             "end",           "then",  "if-rank",      "1",     "then",  "touch",       path("ready-1"),
             "then",          "await", path("heard")},
            when_ready([number] { ::kill(::getpid(), number); }));
    EXPECT_EQ(result.exit_code, 0) << said;
    EXPECT_THAT(said, HasSubstr(name + " came: passed on to 1 worker, not to 1 worker"));
  }
}

TEST_F(AgentStopTest, OnlyTheSignalsThatWereNamedStopIt) {
  options.stop_signals = {SIGUSR1};
  const AgentResult result =
      run({"touch", path("ready-{rank}"), "then", "wait"}, when_ready([] { ::kill(::getpid(), SIGUSR1); }));
  EXPECT_EQ(result.exit_code, 128 + SIGUSR1);
  EXPECT_EQ(sentence_of(result.workers[0]), "was killed by SIGUSR1, sent by muster");
}

// A tracer that does not wait for its tracee keeps it from being reaped, as a sleep in the kernel would.
TEST_F(AgentStopTest, G4_AWorkerThatCannotBeReapedIsNamedInBoundedTimeAndTheExitCodeSaysSo) {
  const pid_t tracer = ::fork();
  if (tracer == 0) {
    const pid_t tracee = pid_in("pid-1");
    const bool held = ::ptrace(PTRACE_SEIZE, tracee, nullptr, nullptr) == 0;
    std::ofstream(path(held ? "ready-1" : "not-allowed")) << "";
    for (;;) ::pause();
  }
  alone = false;
  options.supervisor.graces.stop = 100ms;
  options.supervisor.after_kill_limit = 200ms;
  options.supervisor.sweep_limit = 200ms;
  bool forbidden = false;
  const auto stop = [&] { ::kill(::getpid(), SIGTERM); };
  auto ready = when_ready(stop);
  const AgentResult result =
      run({"pid", path("pid-{rank}"), "then", "if-rank", "0", "then", "touch", path("ready-0"), "then", "end",
           "then", "wait"},
          [&] {
            if (std::filesystem::exists(path("not-allowed")) && !std::exchange(forbidden, true)) stop();
            ready();
          });
  ::kill(tracer, SIGKILL);
  ::waitpid(tracer, nullptr, 0);
  if (forbidden) GTEST_SKIP() << "tracing is not allowed here";
  EXPECT_EQ(result.exit_code, kUncleanExitCode);
  const std::string pid = std::to_string(result.workers.at(1).pid);
  EXPECT_THAT(said, HasSubstr("rank 1 (local 1, pid " + pid + ") outlived SIGKILL: pid " + pid));
  EXPECT_THAT(said, HasSubstr("held by its tracer, pid " + std::to_string(tracer)));
  ::waitpid(result.workers.at(1).pid, nullptr, 0);  // released with the tracer's end
}

TEST_F(AgentStopTest, G1_NothingOutlivesAnAgentThatIsKilledAtAnyMoment) {
  for (int attempt = 0; attempt < 10; ++attempt) {
    std::filesystem::remove_all(path("pids"));
    std::filesystem::create_directory(path("pids"));
    const pid_t agent = ::fork();
    if (agent == 0) {
      ::close(STDERR_FILENO);
      run({"session-grandchild", path("pids/{pid}-s"), "600000", "then", "grandchild", path("pids/{pid}-g"),
           "600000", "then", "pid", path("pids/{pid}"), "then", "hang"});
      ::_exit(0);
    }
    std::this_thread::sleep_for(attempt * 2ms);  // the moment is what varies
    ::kill(agent, SIGKILL);
    ASSERT_EQ(::waitpid(agent, nullptr, 0), agent);
    EXPECT_TRUE(comes_true(
        [&] {
          for (const auto& entry : std::filesystem::directory_iterator(path("pids"))) {
            const std::string text = read_file(entry.path());
            if (!text.empty() && alive(std::stoi(text))) return false;
          }
          return true;
        },
        2s))
        << "attempt " << attempt;
  }
}

}  // namespace
}  // namespace muster::agent
