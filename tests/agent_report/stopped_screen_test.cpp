// The last screen of a job that somebody stopped.
#include <gmock/gmock.h>

#include "tests/agent_report/sample_report.hpp"

namespace muster::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

JobReport stopped_job() {
  JobReport report = sample_failed_job();
  report.outcome = {};
  report.outcome.kind = rendezvous::OutcomeKind::preempted;
  report.outcome.reason = "stopped by SIGTERM from outside";
  report.stop_signal = SIGTERM;
  report.stop_grace = std::chrono::seconds(30);
  ExitCause stopped = ExitCause::signalled(SIGTERM);
  stopped.stopped_by_muster = true;
  for (WorkerRecord& worker : report.workers) {
    if (worker.round != 2) continue;
    worker.end = stopped;
    worker.last_output_unix_ms = worker.ended_unix_ms - 3000;
  }
  return report;
}

TEST(StoppedScreen, OfAHealthyJobIsOneLine) {
  EXPECT_EQ(
      render_report(stopped_job()),
      "muster: job mnist preempted: stopped by SIGTERM from outside; the same command starts it again, "
      "from its newest checkpoint if it keeps any; logs in /logs/mnist; status: /logs/mnist/status.json\n");
}

TEST(StoppedScreen, WhoIgnoredTheSignalIsNamedInTheFirstLine) {
  JobReport report = stopped_job();
  report.workers[2].end->value = SIGKILL;
  report.workers[2].ended_unix_ms = report.workers[1].ended_unix_ms + 30'000;
  const std::string text = render_report(report);
  EXPECT_THAT(text,
              StartsWith("muster: job mnist preempted: stopped by SIGTERM from outside, and rank 1 had to be "
                         "killed after the grace of 30 s; let it leave on SIGTERM\n\n"));
  EXPECT_THAT(text, HasSubstr("\n  workers        rank 1 stopped by muster (SIGKILL) within 30 s\n"
                              "                 ranks 0, 2 stopped by muster (SIGTERM) within 82 ms\n"));
  EXPECT_THAT(text, HasSubstr("\n  what to do     what rank 1 had not saved is lost: "));
}

TEST(StoppedScreen, AGraceThatASecondSignalCutIsNotLaidToTheOption) {
  JobReport report = stopped_job();
  report.workers[2].end->value = SIGKILL;
  report.stop_signals = 2;
  report.stop_grace = std::chrono::seconds(3);
  const std::string text = render_report(report);
  EXPECT_THAT(text, HasSubstr("rank 1 had to be killed after the 3 s that a second signal left; "));
  EXPECT_THAT(text, Not(HasSubstr("--stop-grace")));
}

TEST(StoppedScreen, G4_WhereSomethingIsStillThereTheJobIsNotToBeStartedAgain) {
  JobReport report = stopped_job();
  report.survivors = {"rank 1 (local 1, pid 48211) outlived SIGKILL: pid 48211 is in state D"};
  const std::string text = render_report(report);
  EXPECT_THAT(
      text,
      StartsWith("muster: job mnist preempted: stopped by SIGTERM from outside, but rank 1 (local 1, pid "
                 "48211) outlived SIGKILL: pid 48211 is in state D; end it before the job starts again\n"));
  EXPECT_THAT(text, Not(HasSubstr("the same command")));
}

TEST(StoppedScreen, TimesCountFromTheSignal) {
  JobReport report = stopped_job();
  report.stop_signal_unix_ms = report.workers[0].ended_unix_ms - 5000;
  for (WorkerRecord& worker : report.workers) {
    worker.end->value = SIGKILL;
    worker.ended_unix_ms = report.workers[0].ended_unix_ms;
  }
  EXPECT_THAT(render_report(report), HasSubstr("stopped by muster (SIGKILL) within 5 s\n"));
}

TEST(StoppedScreen, OneThatDidNotGetOnSaysWhoWasWaitedFor) {
  JobReport report = stopped_job();
  report.stalls.push_back(
      {2, report.workers[2].ended_unix_ms - 5000, "rank 0 waits for rank 1's gloo address"});
  const std::string text = render_report(report);
  EXPECT_THAT(text, HasSubstr(" from outside, while it did not get on; see below who is waited for\n"));
  EXPECT_THAT(
      text,
      HasSubstr("\n  did not get on rank 0 waits for rank 1's gloo address (said 5 s before the stop)\n"));
  report.stalls.back().over_unix_ms = report.workers[2].ended_unix_ms - 4000;
  EXPECT_THAT(render_report(report), Not(HasSubstr("get on"))) << "it did, after a while";
  report.stalls.back().over_unix_ms = 0;
  report.stalls.back().round = 1;
  EXPECT_THAT(render_report(report), Not(HasSubstr("get on"))) << "an earlier round's";
}

TEST(StoppedScreen, ALongSilenceIsSaid) {
  JobReport report = stopped_job();
  for (WorkerRecord& worker : report.workers) worker.last_output_unix_ms -= 180'000;
  EXPECT_THAT(render_report(report), HasSubstr(", after no worker had printed anything for 3 min"));
}

TEST(StoppedScreen, F5_WhatAWorkerLeftBehindIsNamed) {
  JobReport report = stopped_job();
  report.workers[2].killed_rest = "pid 4712 (sleep 600)";
  const std::string text = render_report(report);
  EXPECT_THAT(text,
              StartsWith("muster: job mnist preempted: stopped by SIGTERM from outside, and what rank 1 left "
                         "behind had to be killed after the grace of 30 s; let it leave on SIGTERM, see "
                         "below\n\n"));
  EXPECT_THAT(text, HasSubstr("rank 1 stopped by muster (SIGTERM) at once; left pid 4712 (sleep 600) behind, "
                              "which muster killed\n"));
}

}  // namespace
}  // namespace muster::agent
