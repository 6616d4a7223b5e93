#include "agent/process/worker_process.hpp"

#include <sys/ptrace.h>

#include "tests/agent/process/processes.hpp"

namespace muster::agent {
namespace {

using WorkerProcessTest = Processes;

TEST_F(WorkerProcessTest, H4_EveryExitCodeIsSeen) {
  std::vector<std::unique_ptr<WorkerProcess>> workers;
  std::vector<int> seen(256, -1);
  int ended = 0;
  for (int code = 0; code < 256; ++code) {
    workers.push_back(
        std::move(*WorkerProcess::adopt(io.get_executor(), start(request({"exit", std::to_string(code)})))));
    workers.back()->on_end([&, code](ExitCause cause) {
      if (cause.kind == ExitCause::Kind::exited) seen[static_cast<std::size_t>(code)] = cause.value;
      ++ended;
    });
  }
  ASSERT_TRUE(run_until([&] { return ended == 256; }));
  for (int code = 0; code < 256; ++code) EXPECT_EQ(seen[static_cast<std::size_t>(code)], code);
}

TEST_F(WorkerProcessTest, EveryDeadlySignalIsSeen) {
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGKILL, SIGUSR1,
                           SIGSEGV, SIGUSR2, SIGPIPE, SIGALRM, SIGTERM, 40})
    EXPECT_EQ(end_of(request({"signal", std::to_string(number)})), ExitCause::signalled(number));
}

TEST_F(WorkerProcessTest, H5_AKilledWorkerIsSeenAtOnce) {
  auto worker = std::move(*WorkerProcess::adopt(io.get_executor(), start(request({"wait"}))));
  bool ended = false;
  worker->on_end([&](ExitCause cause) { ended = cause == ExitCause::signalled(SIGKILL); });
  ASSERT_TRUE(worker->signal_main(SIGKILL));
  const auto before = std::chrono::steady_clock::now();
  ASSERT_TRUE(run_until([&] { return ended; }));
  EXPECT_LT(std::chrono::steady_clock::now() - before, 500ms);
}

TEST_F(WorkerProcessTest, F8_EndsAreToldInTheOrderInWhichTheyHappened) {
  const std::vector<int> order{3, 0, 4, 1, 2};
  std::vector<std::unique_ptr<WorkerProcess>> workers;
  std::vector<int> told;
  for (int index = 0; index < 5; ++index) {
    workers.push_back(std::move(*WorkerProcess::adopt(io.get_executor(), start(request({"wait"})))));
    workers.back()->on_end([&told, index](ExitCause) { told.push_back(index); });
  }
  // All have ended before any end is looked at.
  for (const int index : order) {
    const auto& worker = workers[static_cast<std::size_t>(index)];
    ASSERT_TRUE(worker->signal_main(SIGKILL));
    ASSERT_TRUE(comes_true([&] { return state_of(worker->pid()) == 'Z'; }));
  }
  ASSERT_TRUE(run_until([&] { return told.size() == 5; }));
  EXPECT_EQ(told, order);
}

TEST_F(WorkerProcessTest, F5_ASignalToTheMainProcessDoesNotReachItsHelpers) {
  auto worker = std::move(*WorkerProcess::adopt(
      io.get_executor(), start(request({"grandchild", path("helper"), "600000", "then", "ignore", "USR1",
                                        "then", "touch", path("ready"), "then", "wait"}))));
  const pid_t helper = pid_in("helper");
  ASSERT_TRUE(comes_true([&] { return std::filesystem::exists(path("ready")); }));
  bool ended = false;
  worker->on_end([&](ExitCause) { ended = true; });
  ASSERT_TRUE(worker->signal_main(SIGUSR1));
  EXPECT_FALSE(run_until([&] { return ended; }, 30ms));
  EXPECT_TRUE(alive(helper));

  ASSERT_TRUE(worker->signal_main(SIGTERM));
  ASSERT_TRUE(run_until([&] { return ended; }));
  EXPECT_TRUE(comes_true([&] { return !alive(helper); })) << "the rest of its group is ended after it";
}

TEST_F(WorkerProcessTest, ASignalAfterTheEndIsNoError) {
  auto worker = std::move(*WorkerProcess::adopt(io.get_executor(), start(request({"exit", "0"}))));
  worker->on_end([](ExitCause) {});
  ASSERT_TRUE(run_until([&] { return !worker->running(); }));
  EXPECT_TRUE(worker->signal_main(SIGTERM));
  EXPECT_TRUE(worker->signal_group(SIGKILL));
}

TEST_F(WorkerProcessTest, AnEndedWorkerThatADebuggerHoldsDoesNotBlockTheAgent) {
  const pid_t tracer = ::fork();
  if (tracer == 0) {
    const bool held = ::ptrace(PTRACE_SEIZE, pid_in("pid"), nullptr, nullptr) == 0;
    std::ofstream(path(held ? "held" : "not-allowed")) << "";
    for (;;) ::pause();
  }
  auto worker = std::move(
      *WorkerProcess::adopt(io.get_executor(), start(request({"pid", path("pid"), "then", "wait"}))));
  bool ended = false;
  worker->on_end([&](ExitCause cause) { ended = cause == ExitCause::signalled(SIGKILL); });
  ASSERT_TRUE(comes_true(
      [&] { return std::filesystem::exists(path("held")) || std::filesystem::exists(path("not-allowed")); }));
  const bool allowed = std::filesystem::exists(path("held"));
  ASSERT_TRUE(worker->signal_main(SIGKILL));
  if (allowed) {
    EXPECT_FALSE(run_until([&] { return ended; }, 100ms));
  }
  ::kill(tracer, SIGKILL);
  ::waitpid(tracer, nullptr, 0);
  if (!allowed) GTEST_SKIP() << "tracing is not allowed here";
  ASSERT_TRUE(comes_true([&] {
    worker->child_changed();
    return ended;
  }));
}

TEST_F(WorkerProcessTest, DestroyingItKillsTheGroup) {
  auto worker = std::move(*WorkerProcess::adopt(io.get_executor(), start(request({"hang"}))));
  const pid_t pid = worker->pid();
  worker.reset();
  EXPECT_TRUE(comes_true([&] { return !alive(pid); }));
}

}  // namespace
}  // namespace muster::agent
