#include "agent/process/descendants.hpp"

#include <sys/prctl.h>

#include <optional>

#include "tests/agent/process/processes.hpp"

namespace muster::agent {
namespace {

class DescendantsTest : public Processes {
 protected:
  ~DescendantsTest() override { ::prctl(PR_SET_CHILD_SUBREAPER, 0); }

  // A worker that leaves a child in another session behind and ends by itself.
  SpawnRequest runaway(std::vector<std::string> environment = {}) {
    SpawnRequest wanted = request({"session-grandchild", path("runaway"), "600000", "then", "await",
                                   path("runaway"), "then", "exit", "0"});
    wanted.environment.insert(wanted.environment.end(), environment.begin(), environment.end());
    return wanted;
  }
  void run_to_its_end(Descendants& descendants, const SpawnRequest& wanted) {
    auto worker = std::move(*WorkerProcess::adopt(io.get_executor(), start(wanted)));
    descendants.worker_started(worker->pid());
    worker->on_end([&](ExitCause) { descendants.worker_ended(worker->pid(), 1, 0); });
    ASSERT_TRUE(run_until([&] { return !worker->running(); }));
  }
  std::optional<std::vector<std::string>> sweep(Descendants& descendants, Duration limit = 5s) {
    std::optional<std::vector<std::string>> result;
    descendants.sweep(limit, [&](std::vector<std::string> survivors) { result = std::move(survivors); });
    run_until([&] { return result.has_value(); });
    return result;
  }
};

TEST_F(DescendantsTest, NothingToSweepIsToldAtOnce) {
  Descendants descendants(io.get_executor());
  bool done = false;
  descendants.sweep(5s, [&](const std::vector<std::string>& survivors) { done = survivors.empty(); });
  EXPECT_TRUE(done);
}

TEST_F(DescendantsTest, G2_AGrandchildInItsOwnSessionIsKilledBySweeping) {
  Descendants descendants(io.get_executor());
  run_to_its_end(descendants, runaway());
  const pid_t pid = pid_in("runaway");
  EXPECT_TRUE(alive(pid));
  EXPECT_EQ(sweep(descendants), std::vector<std::string>{});
  EXPECT_EQ(state_of(pid), '-') << "reaped, too";
}

TEST_F(DescendantsTest, G2_AGrandchildThatCarriesItsWorkersRankIsKilledWithIt) {
  Descendants descendants(io.get_executor());
  run_to_its_end(descendants, runaway({"RANK=0", "MUSTER_ROUND=1"}));
  const pid_t pid = pid_in("runaway");
  EXPECT_TRUE(run_until([&] { return state_of(pid) == '-'; }));
}

TEST_F(DescendantsTest, AChainOfProcessesCollapsesToItsLast) {
  Descendants descendants(io.get_executor());
  SpawnRequest wanted = request({});
  wanted.executable = "/bin/sh";
  const std::string deepest = "setsid sh -c 'echo $$ >" + path("partial") + "; mv " + path("partial") + " " +
                              path("deepest") + "; sleep 600; :'";
  wanted.arguments = {"-c", "setsid sh -c \"setsid sh -c \\\"" + deepest + "; :\\\"; :\" & while [ ! -e " +
                                path("deepest") + " ]; do sleep 0.01; done"};
  run_to_its_end(descendants, wanted);
  const pid_t pid = pid_in("deepest");
  EXPECT_EQ(sweep(descendants), std::vector<std::string>{});
  EXPECT_FALSE(alive(pid));
}

TEST_F(DescendantsTest, F6_OrphansThatEndAreReapedWhileWorkersRun) {
  Descendants descendants(io.get_executor());
  SpawnRequest wanted = request(
      {"session-grandchild", path("short"), "0", "then", "await", path("short"), "then", "exit", "0"});
  run_to_its_end(descendants, wanted);
  const pid_t pid = pid_in("short");
  EXPECT_TRUE(run_until([&] { return state_of(pid) == '-'; }));
}

TEST_F(DescendantsTest, ChildrenFromBeforeAreNoneOfTheJobs) {
  auto earlier = std::move(*WorkerProcess::adopt(io.get_executor(), start(request({"wait"}))));
  Descendants descendants(io.get_executor());
  auto later = std::move(*WorkerProcess::adopt(io.get_executor(), start(request({"wait"}))));
  descendants.spare(later->pid());
  EXPECT_EQ(sweep(descendants), std::vector<std::string>{});
  EXPECT_TRUE(alive(earlier->pid()));
  EXPECT_TRUE(alive(later->pid()));
}

TEST_F(DescendantsTest, G4_WhatOutlivesTheLimitIsNamedWithItsState) {
  Descendants descendants(io.get_executor());
  const pid_t pid = start(request({"wait"}));  // looks like an orphan
  std::optional<std::vector<std::string>> result;
  descendants.sweep(0s, [&](std::vector<std::string> survivors) { result = std::move(survivors); });
  ASSERT_TRUE(run_until([&] { return result.has_value(); }));
  // Killed, but whether it is reaped within no time at all is the kernel's choice.
  for (const std::string& survivor : *result)
    EXPECT_THAT(survivor,
                ::testing::StartsWith("pid " + std::to_string(pid) + " (muster_test_chi) is in state"));
  EXPECT_TRUE(run_until([&] { return state_of(pid) == '-'; }));
}

}  // namespace
}  // namespace muster::agent
