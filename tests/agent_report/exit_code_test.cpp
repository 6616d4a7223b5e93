#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <set>

#include "tests/agent_report/sample_report.hpp"

namespace muster::agent {
namespace {

rendezvous::Outcome failed(ExitCause cause) { return sample_failed_job(cause).outcome; }

rendezvous::Outcome ended(rendezvous::OutcomeKind kind) {
  rendezvous::Outcome outcome;
  outcome.kind = kind;
  return outcome;
}

TEST(ExitCodeOf, H1_AFailedJobHasTheFirstFailuresCodeAndNeverZero) {
  for (int code = 0; code < 256; ++code) {
    const int expected = code == 0 ? 1 : code;
    EXPECT_EQ(exit_code_of(failed(ExitCause::exited(code))), expected);
  }
}

TEST(ExitCodeOf, ASignalIs128AndItsNumber) {
  for (int number = 1; number <= 64; ++number)
    EXPECT_EQ(exit_code_of(failed(ExitCause::signalled(number))), 128 + number);
}

TEST(ExitCodeOf, AFailedStartIsAsAShellWouldGiveIt) {
  EXPECT_EQ(exit_code_of(failed(ExitCause::start_failed(ENOENT))), 127);
  EXPECT_EQ(exit_code_of(failed(ExitCause::start_failed(EACCES))), 126);
  EXPECT_EQ(exit_code_of(failed(ExitCause::start_failed(EMFILE))), kLauncherFailedExitCode);
  EXPECT_EQ(exit_code_of(failed(ExitCause::start_failed(EAGAIN))), kLauncherFailedExitCode);
}

TEST(ExitCodeOf, WhatTheSystemHasNoRoomForIsNotTheProgramsFault) {
  for (const int number : {EMFILE, ENFILE, EAGAIN, ENOMEM, ENOSPC})
    EXPECT_EQ(exit_code_of(failed(ExitCause::start_failed(number))), kLauncherFailedExitCode) << number;
}

TEST(ExitCodeOf, H2_CausesHaveDifferentCodes) {
  using rendezvous::OutcomeKind;
  const std::set<int> codes = {exit_code_of(failed(ExitCause::signalled(SIGKILL))),
                               exit_code_of(failed(ExitCause::exited(3))), kUsageExitCode,
                               exit_code_of(ended(OutcomeKind::rendezvous_failed)), kLauncherFailedExitCode};
  EXPECT_EQ(codes, (std::set<int>{2, 3, 70, 75, 137}));
}

TEST(ExitCodeOf, F9_AStopFromOutsideHasItsSignalsCode) {
  EXPECT_EQ(exit_code_of(ended(rendezvous::OutcomeKind::preempted), SIGTERM), 143);
  EXPECT_EQ(exit_code_of(ended(rendezvous::OutcomeKind::stopped), SIGINT), 130);
  EXPECT_EQ(exit_code_of(ended(rendezvous::OutcomeKind::stopped)), 143) << "an operator's stop";
}

// Of a Ctrl-C on all nodes one is always heard of before the others' own: whoever is late ends with the same code.
TEST(ExitCodeOf, G2_WhoIsEndedByAnotherNodesSignalEndsWithItsCode) {
  auto outcome = ended(rendezvous::OutcomeKind::preempted);
  EXPECT_EQ(exit_code_of(outcome), 143) << "nobody had a signal";
  outcome.stop_signal = SIGINT;
  EXPECT_EQ(exit_code_of(outcome), 130);
  EXPECT_EQ(exit_code_of(outcome, SIGTERM), 143) << "its own counts before";
}

TEST(ExitCodeOf, H6_ALostNodeIsNoFaultOfMustersNorOfTheProgram) {
  EXPECT_EQ(exit_code_of(ended(rendezvous::OutcomeKind::node_lost)), kRendezvousFailedExitCode);
}

TEST(ExitCodeOf, SuccessIsZero) { EXPECT_EQ(exit_code_of(ended(rendezvous::OutcomeKind::succeeded)), 0); }

TEST(ExitCodeOf, AFailureWithoutAWorkerIsTheLaunchers) {
  EXPECT_EQ(exit_code_of(ended(rendezvous::OutcomeKind::failed)), kLauncherFailedExitCode);
}

}  // namespace
}  // namespace muster::agent
