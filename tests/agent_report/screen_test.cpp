#include <gmock/gmock.h>

#include <algorithm>
#include <cerrno>

#include "tests/agent_report/sample_report.hpp"

namespace muster::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

long lines_of(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

TEST(Screen, AFailureAsItPrints) {
  ExitCause cause = ExitCause::signalled(SIGKILL);
  cause.evidence = "its cgroup counted 1 OOM kill (peak 15.8 GiB of 16.0 GiB)";
  std::string text = render_report(sample_failed_job(cause));
  const auto clock = text.find("round 2, ") + 9;
  text.replace(clock, 12, "HH:MM:SS.mmm");  // local time
  EXPECT_EQ(
      text,
      "muster: job mnist FAILED: rank 1 on n3 was killed by SIGKILL, not sent by muster, most likely out of "
      "memory; give it more memory or lower its use\n"
      "\n"
      "  first failure  rank 1 (local 1) on n3, pid 48211, round 2, HH:MM:SS.mmm, after 2.5 s\n"
      "  how it ended   killed by SIGKILL, not sent by muster; its cgroup counted 1 OOM kill (peak 15.8 "
      "GiB of 16.0 GiB)\n"
      "  its last lines /logs/mnist/round-2/rank-1/stderr.log\n"
      "      step 911 loss 0.3127\n"
      "      loading shard 7\n"
      "  consequences   ranks 0, 2 stopped by muster (SIGTERM) within 0.2 s\n"
      "  restarts       1 of 1 used: rank 1 (exit 3)\n"
      "  what to do     lower the memory use of rank 1 or raise the memory limit on n3; status: "
      "/logs/mnist/status.json\n");
}

TEST(Screen, I3_AVictimIsToldFromOneThatFailedByItself) {
  JobReport report = sample_failed_job();
  report.workers[3].end = ExitCause::exited(1);
  const std::string text = render_report(report);
  EXPECT_THAT(text, HasSubstr("rank 0 stopped by muster (SIGTERM)"));
  EXPECT_THAT(text, HasSubstr("rank 2 exited with code 1 within 0.2 s"));
}

TEST(Screen, I2_IsUnder30LinesWhateverTheWorkersDid) {
  JobReport report = sample_failed_job();
  report.outcome.first_failure->last_lines.assign(30, std::string(5000, 'x'));
  report.outcome.first_failure->message = "ValueError: no";
  for (int rank = 0; rank < 200; ++rank)
    report.workers.push_back(
        {rank, rank, 50000 + rank, 2, ExitCause::exited(1 + rank), 1, 1'700'000'001'000, ""});
  const std::string text = render_report(report);
  EXPECT_LT(lines_of(text), 30);
  EXPECT_LT(text.size(), 10'000u);
  EXPECT_THAT(text, HasSubstr("its error file ValueError: no"));
}

TEST(Screen, AWorkersColoursEndWithItsLine) {
  JobReport report = sample_failed_job();
  report.outcome.first_failure->last_lines = {"\x1b[31mred"};
  EXPECT_THAT(render_report(report), HasSubstr("\x1b[31mred\x1b[0m\n"));
}

TEST(Screen, AWorkersControlSequencesCannotTouchTheReport) {
  JobReport report = sample_failed_job();
  report.outcome.first_failure->last_lines = {"real\tcause",
                                              "\x1b[2J\x1b[Hx\x1b[1;31mred",
                                              "\x1b]0;title\ay\x1b]8;;u\x1b\\z",
                                              "\x1b(Bw\x1b"
                                              "7v\b\b\r!",
                                              "cut \x1b[",
                                              "cut \x1b",
                                              "\x1b]never ends"};
  const std::string text = render_report(report);
  for (const char* wanted :
       {"      real\tcause\n", "      x\x1b[1;31mred\x1b[0m\n", "      yz\n", "      wv!\n", "      cut \n"})
    EXPECT_THAT(text, HasSubstr(wanted));
  for (const char byte : {'\a', '\b', '\r'}) EXPECT_EQ(text.find(byte), std::string::npos);
  EXPECT_EQ(text.find("\x1b["), text.find("\x1b[1;31m"));
}

TEST(Screen, BytesThatNoScreenShowsAreNoLines) {
  JobReport report = sample_failed_job();
  auto& lines = report.outcome.first_failure->last_lines;
  lines.assign(16, std::string(1024, '\0'));
  EXPECT_THAT(
      render_report(report),
      HasSubstr("  its last lines nothing that a screen can show; /logs/mnist/round-2/rank-1/stderr.log\n"
                "  consequences"));
  lines.insert(lines.begin(), {"no data", ""});
  EXPECT_THAT(render_report(report), HasSubstr("stderr.log\n      no data\n      \n  consequences"));
}

TEST(Screen, I2_TheHeadlineHasTheExceptionAndItsPlace) {
  JobReport report = sample_failed_job(ExitCause::exited(1));
  report.outcome.first_failure->last_lines = {
      "Traceback (most recent call last):", "  File \"/home/me/train.py\", line 42, in <module>",
      "ValueError: " + std::string(500, 'v')};
  const std::string text = render_report(report);
  EXPECT_THAT(text, StartsWith("muster: job mnist FAILED: rank 1 on n3 exited with code 1, ValueError: vvv"));
  EXPECT_THAT(text, HasSubstr("vvv ...; see train.py line 42\n"));
}

TEST(Screen, I2_TheEndOfALongErrorFileIsShownInABoundedBlock) {
  JobReport report = sample_failed_job(ExitCause::exited(1));
  rendezvous::WorkerFailure& failure = *report.outcome.first_failure;
  failure.message = "Traceback (most recent call last):\n";
  for (int number = 0; number < 400; ++number) failure.message += "  frame " + std::to_string(number) + "\n";
  failure.message += "ValueError: no\n\n";
  for (const bool silent : {false, true}) {
    if (silent) failure.last_lines.clear();
    const std::string text = render_report(report);
    EXPECT_LT(lines_of(text), 30);
    EXPECT_THAT(text, HasSubstr(silent ? "  its error file the last 16 of 402 lines\n      "
                                       : "  its error file the last 14 of 402 lines\n      "));
    EXPECT_THAT(text, HasSubstr("\n        frame 399\n      ValueError: no\n  its last lines "));
    EXPECT_THAT(text, HasSubstr(silent ? "what to do     mend what its error file says"
                                       : "mend what its last lines"));
  }
}

TEST(Screen, I2_ATracebackThatIsOnStderrTooIsShownOnce) {
  JobReport report = sample_failed_job(ExitCause::exited(1));
  rendezvous::WorkerFailure& failure = *report.outcome.first_failure;
  failure.last_lines = {"Traceback (most recent call last):", "  File \"train.py\", line 4, in <module>",
                        "ValueError: no"};
  failure.message =
      "Traceback (most recent call last):\n  File \"train.py\", line 4, in <module>\nValueError: no\n";
  const std::string text = render_report(report);
  EXPECT_THAT(text, HasSubstr("  its error file ValueError: no\n  its last lines /logs"));
}

TEST(Screen, ASentenceWithNewlinesInItStaysOneLine) {
  JobReport report = sample_failed_job();
  report.outcome.max_restarts = 5;
  report.outcome.reason = "first\nsecond";
  EXPECT_THAT(render_report(report), HasSubstr("no more, since first second\n"));
}

TEST(Screen, TheTimeOfAnEndStandsWithTheEndAndNotWithItsEvidence) {
  JobReport report = sample_failed_job();
  report.workers[3].end = ExitCause::signalled(SIGKILL);
  report.workers[3].end->evidence = "its cgroup counted no OOM kill";
  report.workers[3].ended_unix_ms = report.outcome.first_failure->unix_time_ms;
  EXPECT_THAT(render_report(report),
              HasSubstr("rank 2 was killed by SIGKILL, not sent by muster at once; its "
                        "cgroup counted no OOM kill\n"));
}

TEST(Screen, WorkersOfANodeWhoseRankChangedAreCountedOnce) {
  JobReport report = sample_failed_job();
  report.outcome.kind = rendezvous::OutcomeKind::succeeded;
  report.workers = {report.workers[0], report.workers[1]};
  report.workers[0].rank = 1;  // round 1, and 0 in round 2
  EXPECT_THAT(render_report(report), HasSubstr(": 1 worker here, "));
}

TEST(Screen, G4_WhatOutlivedSigkillIsNamedWhateverTheEnd) {
  JobReport report = sample_failed_job();
  report.survivors = {"pid 4711 (python3) is in state D and outlived SIGKILL"};
  EXPECT_THAT(render_report(report), HasSubstr("\n  still there    pid 4711 (python3) is in state D"));
  EXPECT_THAT(render_report(report),
              HasSubstr("; pid 4711 (python3) is in state D and outlived SIGKILL; end it "
                        "before the job starts again\n\n"));
  report.outcome.kind = rendezvous::OutcomeKind::succeeded;
  EXPECT_THAT(render_report(report),
              HasSubstr(", but pid 4711 (python3) is in state D and outlived SIGKILL"));
}

TEST(Screen, NoRestartsAllowedIsSaid) {
  JobReport report = sample_failed_job();
  report.outcome.max_restarts = 2;
  report.outcome.reason = "rank 1 exited with code 3, it says itself that trying again would not help";
  EXPECT_THAT(render_report(report), HasSubstr("1 of 2 used: rank 1 (exit 3); no more, since rank 1 exited"));
  report.outcome.max_restarts = 0;
  report.outcome.restarts.clear();
  EXPECT_THAT(render_report(report), HasSubstr("none allowed (--max-restarts)"));
}

TEST(Screen, SuccessIsOneLine) {
  JobReport report = sample_failed_job();
  report.outcome.kind = rendezvous::OutcomeKind::succeeded;
  const std::string text = render_report(report);
  EXPECT_EQ(lines_of(text), 1);
  EXPECT_THAT(text, StartsWith("muster: job mnist succeeded after 1 restart: 3 workers here, "));
  EXPECT_THAT(text, Not(HasSubstr("FAILED")));
}

TEST(Screen, OtherEndsAreOneLine) {
  using rendezvous::OutcomeKind;
  for (const auto kind :
       {OutcomeKind::stopped, OutcomeKind::preempted, OutcomeKind::rendezvous_failed, OutcomeKind::failed}) {
    JobReport report;
    report.run_id = "mnist";
    report.outcome.kind = kind;
    report.outcome.reason = "the reason";
    const std::string text = render_report(report);
    EXPECT_EQ(lines_of(text), 1);
    EXPECT_THAT(text, StartsWith("muster: job mnist "));
    EXPECT_THAT(text, HasSubstr("the reason"));
    if (kind == OutcomeKind::stopped || kind == OutcomeKind::preempted) {
      EXPECT_THAT(text,
                  HasSubstr("the reason; the same command starts it again, from its newest checkpoint"));
    }
  }
}

TEST(Screen, H6_ALostNodeHasItsNextStep) {
  JobReport report;
  report.run_id = "mnist";
  report.outcome.kind = rendezvous::OutcomeKind::node_lost;
  report.outcome.reason =
      "n2 was lost (connection closed): 1 node of at least 2 left, and 0 of 0 restarts used";
  EXPECT_THAT(
      render_report(report),
      StartsWith(
          "muster: job mnist FAILED: n2 was lost (connection closed): 1 node of at least 2 left, and 0 of "
          "0 restarts used; see on that machine why, and launch again; --max-restarts waits"));
}

TEST(Screen, OfAWorkerThatCouldNotBeStartedNothingIsToldThatItNeverHad) {
  JobReport report = sample_failed_job(ExitCause::start_failed(ENOEXEC));
  rendezvous::WorkerFailure& failure = *report.outcome.first_failure;
  failure.pid = 0;
  failure.last_lines.clear();
  failure.log_path.clear();
  failure.message = "./train: Exec format error (ENOEXEC)";
  const std::string text = render_report(report);
  EXPECT_THAT(text, HasSubstr("  why            ./train: Exec format error (ENOEXEC)\n"));
  EXPECT_THAT(text, HasSubstr(", at its start\n"));
  for (const char* word : {"pid 0", "error file", "its last lines", "under 1 ms"})
    EXPECT_THAT(text, Not(HasSubstr(word)));
}

TEST(Screen, I3_AnExitCodeIsNotSaidToBeOurWork) {
  JobReport report = sample_failed_job();
  report.workers[1].end = ExitCause::exited(3);
  report.workers[3].end = ExitCause::exited(3);
  report.workers[3].end->stopped_by_muster = true;  // it was asked to stop, and this may be its answer or not
  const std::string text = render_report(report);
  EXPECT_THAT(text, HasSubstr("rank 0 exited with code 3 within 0.1 s"));
  EXPECT_THAT(text, HasSubstr("rank 2 asked by muster to stop, exited with code 3 within 0.2 s"));
  EXPECT_THAT(text, Not(HasSubstr("stopped by muster")));
}

}  // namespace
}  // namespace muster::agent
