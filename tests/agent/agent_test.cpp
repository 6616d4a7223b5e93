// Jobs that end by themselves.
#include "agent/agent.hpp"

#include "tests/agent/job.hpp"

namespace muster::agent {
namespace {

TEST_F(AgentTest, AJobWhoseWorkersAllExitWith0Succeeds) {
  const AgentResult result = run({"out", "1", "hello"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.outcome.kind, rendezvous::OutcomeKind::succeeded);
  ASSERT_EQ(result.workers.size(), 2u);
  for (const WorkerRecord& record : result.workers) {
    EXPECT_EQ(record.end, ExitCause::exited(0));
    EXPECT_GT(record.pid, 0);
    EXPECT_GE(record.ended_unix_ms, record.started_unix_ms);
  }
  EXPECT_THAT(said, HasSubstr("round 1: 1 node, 2 workers, ranks 0-1 here; master 127.0.0.1:4001"));
  EXPECT_EQ(read_file(path("logs/round-1/rank-1/stdout.log")), "hello 0\n");
}

TEST_F(AgentTest, H1_H2_TheExitCodeIsTheFirstFailingWorkers) {
  EXPECT_EQ(run({"if-rank", "1", "then", "exit", "7", "then", "end", "then", "wait"}).exit_code, 7);
  EXPECT_EQ(run({"if-rank", "1", "then", "signal", "KILL", "then", "end", "then", "wait"}).exit_code, 137);
  EXPECT_EQ(run({"if-rank", "0", "then", "signal", "SEGV", "then", "end", "then", "wait"}).exit_code, 139);
}

TEST_F(AgentTest, I6_EveryWorkersEndIsRecordedAndWhoWasStoppedByUs) {
  options.supervisor.offer.local_workers = 4;
  const AgentResult result = run({"if-rank", "2", "then", "err", "3", "line", "then", "error-file",
                                  "bad loss", "then", "exit", "7", "then", "end", "then", "wait"});
  ASSERT_EQ(result.workers.size(), 4u);
  for (const WorkerRecord& record : result.workers)
    EXPECT_EQ(sentence_of(record),
              record.rank == 2 ? "exited with code 7" : "was killed by SIGTERM, sent by muster");
  ASSERT_TRUE(result.outcome.first_failure);
  EXPECT_EQ(result.outcome.first_failure->rank, 2);
  EXPECT_EQ(result.outcome.first_failure->pid, result.workers[2].pid);
  EXPECT_THAT(result.outcome.first_failure->last_lines, ::testing::ElementsAre("line 0", "line 1", "line 2"));
  EXPECT_THAT(result.outcome.first_failure->message, HasSubstr("bad loss"));
  EXPECT_TRUE(result.outcome.first_failure->initialised);
}

TEST_F(AgentTest, AFailureRestartsAllWorkersInANewRoundWithANewStore) {
  policy.max_restarts = 2;
  const AgentResult result =
      run({"env", path("env-{round}-{rank}"), "then", "if-round", "1", "then", "if-rank", "1", "then", "exit",
           "3", "then", "end", "then", "if-round", "1", "then", "wait"});
  EXPECT_EQ(result.exit_code, 0);
  ASSERT_EQ(result.workers.size(), 4u);
  EXPECT_EQ(result.workers[3].round, 2);
  EXPECT_EQ(stores.opened, (std::vector<int>{1, 2}));
  const std::string environment = read_file(path("env-2-1"));
  for (const char* entry :
       {"RANK=1", "TORCHELASTIC_RESTART_COUNT=1", "TORCHELASTIC_MAX_RESTARTS=2", "MUSTER_ROUND=2",
        "MASTER_PORT=4002", "MUSTER_NODE=n1", "TORCHELASTIC_RUN_ID=job"})
    EXPECT_THAT(environment, HasSubstr(std::string(entry) + '\0'));
}

TEST_F(AgentTest, TheBudgetIsUsedUpThenTheJobFails) {
  policy.max_restarts = 2;
  const AgentResult result = run({"exit", "3"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.workers.size(), 6u);
  EXPECT_EQ(result.outcome.restarts.size(), 2u);
}

TEST_F(AgentTest, AProgramThatCannotBeStartedFailsLikeInAShell) {
  options.workers.executable = path("nothing");
  const AgentResult result = run({});
  EXPECT_EQ(result.exit_code, 127);
  ASSERT_EQ(result.workers.size(), 1u) << "the second is not tried";
  ASSERT_TRUE(result.outcome.first_failure);
  EXPECT_THAT(result.outcome.first_failure->message,
              HasSubstr("nothing: No such file or directory (ENOENT)"));
}

TEST_F(AgentTest, StoresThatCannotOpenEndTheJobBeforeAnyWorkerStarts) {
  stores.fails = true;
  const AgentResult result = run({"wait"});
  EXPECT_EQ(result.exit_code, kLauncherFailedExitCode);
  EXPECT_THAT(result.outcome.reason, HasSubstr("EMFILE"));
  EXPECT_TRUE(result.workers.empty());
}

TEST_F(AgentTest, G7_AGrandchildThatHoldsTheOutputDoesNotHoldTheEnd) {
  const auto before = std::chrono::steady_clock::now();
  const AgentResult result = run({"grandchild", path("pid-{rank}"), "600000", "then", "session-grandchild",
                                  path("session-{rank}"), "600000", "then", "await", path("session-{rank}")});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_LT(std::chrono::steady_clock::now() - before, 5s);
  for (const char* name : {"pid-0", "pid-1", "session-0", "session-1"}) {
    if (std::filesystem::exists(path(name))) {
      EXPECT_FALSE(alive(pid_in(name))) << name;
    }
  }
}

TEST_F(AgentTest, ASingleWorkerKeepsStdinSeveralHaveNone) {
  for (const int workers : {1, 2}) {
    options.supervisor.offer.local_workers = workers;
    options.workers.executable = "/bin/sh";
    EXPECT_EQ(run({"-c", "readlink /proc/self/fd/0"}).exit_code, 0);
    const std::string seen = read_file(path("logs/round-1/rank-0/stdout.log"));
    std::filesystem::remove_all(path("logs"));
    const std::string ours = std::filesystem::read_symlink("/proc/self/fd/0").string();
    EXPECT_EQ(seen, (workers == 1 ? ours : "/dev/null") + "\n");
  }
}

TEST_F(AgentTest, O3_RestartsLeakNoDescriptor) {
  const auto descriptors = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  policy.max_restarts = 30;
  std::map<std::size_t, long> seen;  // by number of stores opened so far
  const AgentResult result = run({"exit", "1"}, [&] { seen[stores.opened.size()] = descriptors(); });
  EXPECT_EQ(result.workers.size(), 62u);
  long most_early = 0, most_late = 0;
  for (const auto& [round, count] : seen)
    (round <= 10 ? most_early : most_late) = std::max(round <= 10 ? most_early : most_late, count);
  EXPECT_LE(most_late, most_early);
}

}  // namespace
}  // namespace muster::agent
