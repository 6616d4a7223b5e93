// The daemon goes and comes back, with its journal and without: D7.
#include <filesystem>

#include "rendezvous/server/http.hpp"
#include "tests/rendezvous/support/daemon_fixture.hpp"
#include "tests/support/temporary_folder.hpp"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;

class RestartTest : public DaemonTest {
 protected:
  void SetUp() override {
    policy_.min_nodes = policy_.max_nodes = 2;
    policy_.max_restarts = 3;
  }

  void start(bool with_journal) {
    auto settings = options();
    if (with_journal) settings.state_dir = folder_;
    start_daemon(settings);
  }

  void restart_under_a_running_round(bool with_journal) {
    start(with_journal);
    auto& a = agent("a");
    auto& b = agent("b");
    ASSERT_TRUE(run_until([&] { return a.last<Assignment>() && b.last<Assignment>(); }));
    stop_daemon();
    run_for(milliseconds(100));
    start(with_journal);
    ASSERT_TRUE(run_until([&] { return a.notices.size() == 2 && b.notices.size() == 2; }));
    run_for(milliseconds(200));
    EXPECT_EQ(a.count<Assignment>(), 1) << "nothing restarts because the daemon did";
    EXPECT_EQ(a.count<StopWorkers>() + b.count<StopWorkers>() + a.count<Drain>() + b.count<Drain>(), 0);
    EXPECT_NE(metrics_text(*daemon_).find("muster_job_round{job=\"mnist\"} 1\n"), std::string::npos)
        << metrics_text(*daemon_);

    a.link->send(WorkersSucceeded{1});
    b.link->send(WorkersSucceeded{1});
    ASSERT_TRUE(run_until([&] { return a.last<JobEnded>() && b.last<JobEnded>(); }));
    EXPECT_EQ(a.last<JobEnded>()->outcome.kind, OutcomeKind::succeeded) << a.last<JobEnded>()->outcome.reason;
  }

  /// The worker of `a` is killed while the daemon is away, that of `b` ends of it; b may be heard first.
  void one_failure_follows_another_during_the_gap(bool with_journal) {
    policy_.max_restarts = 0;
    start(with_journal);
    auto& a = agent("a");
    auto& b = agent("b");
    ASSERT_TRUE(run_until([&] { return a.last<Assignment>() && b.last<Assignment>(); }));
    stop_daemon();
    ASSERT_TRUE(run_until([&] { return !a.notices.empty() && !b.notices.empty(); }));
    a.link->send(WorkerFailed{1, failed_worker("a", ExitCause::signalled(9))});
    run_for(milliseconds(5));
    b.link->send(WorkerFailed{1, failed_worker("b", ExitCause::exited(1))});
    start(with_journal);
    for (auto* node : {&b, &a}) {
      ASSERT_TRUE(run_until([&] { return node->last<StopWorkers>() != nullptr; }));
      node->link->send(WorkersStopped{1});
    }
    for (const auto* node : {&a, &b}) {
      ASSERT_TRUE(run_until([&] { return node->last<JobEnded>() != nullptr; }));
      EXPECT_EQ(node->last<JobEnded>()->outcome.kind, OutcomeKind::failed);
      ASSERT_TRUE(node->last<JobEnded>()->outcome.first_failure);
      EXPECT_EQ(node->last<JobEnded>()->outcome.first_failure->node, "a");
    }
  }

  static WorkerFailure failed_worker(const std::string& node, ExitCause cause) {
    WorkerFailure failure;
    failure.node = node;
    failure.rank = node == "a" ? 0 : 2;
    failure.round = 1;
    failure.lived_ms = 60'000;
    failure.cause = std::move(cause);
    return failure;
  }

  test::TemporaryFolder scratch_;
  const std::string folder_ = scratch_.path();
};

TEST_F(RestartTest, D7_WithAJournalNothingRestarts) { restart_under_a_running_round(true); }

TEST_F(RestartTest, D7_WithoutAJournalTheAgentsTellWhatTheyHave) { restart_under_a_running_round(false); }

TEST_F(RestartTest, D7_AJoinDuringTheGapSucceedsAfterwards) {
  start(true);
  auto& a = agent("a");
  ASSERT_TRUE(run_until([&] { return a.last<Waiting>() != nullptr; }));
  stop_daemon();
  auto& b = agent("b");
  run_for(milliseconds(100));
  start(true);
  EXPECT_TRUE(run_until([&] { return a.last<Assignment>() && b.last<Assignment>(); }));
}

TEST_F(RestartTest, D7_WhatAWorkerDidDuringTheGapIsNotLost) {
  start(true);
  auto& a = agent("a");
  auto& b = agent("b");
  ASSERT_TRUE(run_until([&] { return a.last<Assignment>() && b.last<Assignment>(); }));
  stop_daemon();
  ASSERT_TRUE(run_until([&] { return !a.notices.empty(); }));
  a.link->send(WorkerFailed{1, failed_worker("a", ExitCause::signalled(9))});
  start(true);
  // Another node might know of an earlier failure: all are heard first.
  for (auto* node : {&a, &b}) {
    ASSERT_TRUE(run_until([&] { return node->last<StopWorkers>() != nullptr; }));
    node->link->send(WorkersStopped{1});
    node->link->send(Join{offer(link_options(node == &a ? "a" : "b")), 1, 0});
  }
  for (const auto* node : {&a, &b}) {
    ASSERT_TRUE(run_until([&] { return node->count<Assignment>() == 2; }));
    EXPECT_NE(node->last<Assignment>()->reason.find("on a was killed by SIGKILL"), std::string::npos)
        << node->last<Assignment>()->reason;
  }
}

TEST_F(RestartTest, D7_WithAJournalTheFirstFailureOfTheGapIsTheCause) {
  one_failure_follows_another_during_the_gap(true);
}

TEST_F(RestartTest, D7_WithoutAJournalTheFirstFailureOfTheGapIsTheCause) {
  one_failure_follows_another_during_the_gap(false);
}

TEST_F(RestartTest, D7_WhoHasStoppedAndJoinedIsAskedForItsFailure) {
  start(false);
  auto& a = agent("a");
  auto& b = agent("b");
  ASSERT_TRUE(run_until([&] { return a.last<Assignment>() && b.last<Assignment>(); }));
  a.link->send(WorkerFailed{1, failed_worker("a", ExitCause::signalled(9))});
  ASSERT_TRUE(run_until([&] { return a.last<StopWorkers>() && b.last<StopWorkers>(); }));
  const Join again{offer(link_options("a")), 1, 0};
  a.link->send(WorkersStopped{1});
  a.link->send(again);
  ASSERT_TRUE(run_until([&] { return a.last<Waiting>() != nullptr; }));
  stop_daemon();
  start(false);
  ASSERT_TRUE(run_until([&] { return b.count<StopWorkers>() == 2; }));
  b.link->send(WorkersStopped{1});
  b.link->send(Join{offer(link_options("b")), 1, 0});
  for (const auto* node : {&a, &b}) {
    ASSERT_TRUE(run_until([&] { return node->count<Assignment>() == 2; }));
    EXPECT_NE(node->last<Assignment>()->reason.find("on a was killed by SIGKILL"), std::string::npos)
        << node->last<Assignment>()->reason;
    EXPECT_EQ(node->last<Assignment>()->reason.find("was lost"), std::string::npos);
    for (const auto& message : node->received) {
      const auto* stop = std::get_if<StopWorkers>(&message);
      EXPECT_FALSE(stop && stop->reason.empty()) << "the link answers that by itself";
    }
  }
}

/// Launches a and b of a job that has no restarts, and kills both and the daemon; the daemon comes back.
class KilledWholeTest : public RestartTest {
 protected:
  void SetUp() override {
    RestartTest::SetUp();
    policy_.max_restarts = 0;
  }

  TestAgent& launch(const std::string& node, const std::string& incarnation) {
    auto options = link_options(node);
    options.incarnation = incarnation;
    return agent(options);
  }
  void launch_and_meet(const std::string& incarnation) {
    auto& a = launch("a", "a" + incarnation);
    auto& b = launch("b", "b" + incarnation);
    ASSERT_TRUE(run_until([&] { return a.last<Assignment>() && b.last<Assignment>(); }));
    EXPECT_EQ(a.last<Assignment>()->restart_count, 0);
    EXPECT_EQ(a.count<JobEnded>() + b.count<JobEnded>(), 0);
  }
};

TEST_F(KilledWholeTest, C8_WithoutRestartsTheNextRunStartsOverTheJournal) {
  start(true);
  for (const char* launch : {"1", "2", "3"}) {
    launch_and_meet(launch);
    stop_daemon();
    agents_.clear();
    start(true);
  }
}

TEST_F(KilledWholeTest, C8_AndUnderADaemonThatLivedOn) {
  start(true);
  for (const char* launch : {"1", "2", "3"}) {
    launch_and_meet(launch);
    agents_.clear();
  }
}

TEST_F(KilledWholeTest, C8_WhoStillBelongsToTheOldRunIsToldOfItsEndAndNotTakenIntoTheNext) {
  start(true);
  auto& a = launch("a", "a1");
  auto& b = launch("b", "b1");
  ASSERT_TRUE(run_until([&] { return a.last<Assignment>() && b.last<Assignment>(); }));
  agents_.erase(agents_.begin());
  auto& next_a = launch("a", "a2");
  ASSERT_TRUE(run_until([&] { return b.last<JobEnded>() && next_a.last<Waiting>(); }));
  EXPECT_NE(b.last<JobEnded>()->outcome.reason.find("a was lost (its agent was started anew)"),
            std::string::npos)
      << b.last<JobEnded>()->outcome.reason;
  auto& next_b = launch("b", "b2");
  ASSERT_TRUE(run_until([&] { return next_a.last<Assignment>() && next_b.last<Assignment>(); }));
  EXPECT_EQ(next_a.last<Assignment>()->round, 1);
  EXPECT_EQ(next_a.count<JobEnded>(), 0);
}

TEST_F(KilledWholeTest, C8_TheNextRunMayHaveOtherSettings) {
  start(true);
  launch_and_meet("1");
  stop_daemon();
  agents_.clear();
  start(true);
  policy_.last_call = milliseconds(700);
  launch_and_meet("2");
}

TEST_F(RestartTest, AnIdOfAJobThatWasOverBeforeTheRestartIsFree) {
  policy_.min_nodes = policy_.max_nodes = 1;
  start(true);
  auto& first = agent("a");
  ASSERT_TRUE(run_until([&] { return first.last<Assignment>() != nullptr; }));
  first.link->send(WorkersSucceeded{1});
  ASSERT_TRUE(run_until([&] { return first.last<JobEnded>() != nullptr; }));
  first.link->close();
  stop_daemon();
  start(true);
  auto options = link_options("a");
  options.incarnation = "again";
  auto& second = agent(options);
  ASSERT_TRUE(run_until([&] { return second.last<Assignment>() != nullptr; }));
  EXPECT_EQ(second.last<Assignment>()->round, 1);
}

}  // namespace
}  // namespace muster::rendezvous
