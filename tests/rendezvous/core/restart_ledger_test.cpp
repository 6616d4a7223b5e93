#include "rendezvous/core/restart_ledger.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>

namespace muster::rendezvous {
namespace {

using namespace std::chrono_literals;

constexpr Instant start{};

WorkerFailure failure(ExitCause cause, std::int64_t lived_ms = 60'000, int rank = 5) {
  WorkerFailure failure;
  failure.node = "n3";
  failure.rank = rank;
  failure.lived_ms = lived_ms;
  failure.cause = cause;
  return failure;
}

RestartLedger ledger(int max_restarts) {
  JobPolicy policy;
  policy.max_restarts = max_restarts;
  return RestartLedger(policy);
}

TEST(RestartLedger, D19_OneBudgetForTheWholeJobEndsItAtTheThirdFailureOfTwo) {
  RestartLedger book = ledger(2);
  EXPECT_TRUE(book.judge(failure(ExitCause::exited(1)), start).restart);
  EXPECT_EQ(book.judge(failure(ExitCause::signalled(SIGKILL)), start).reason, "restart 2 of 2");
  EXPECT_FALSE(book.judge(failure(ExitCause::exited(1)), start).restart);
  EXPECT_EQ(book.restarts(), 2);
  EXPECT_THAT(book.lines(), testing::ElementsAre("rank 5 (exit 1)", "rank 5 (SIGKILL)"));
}

TEST(RestartLedger, D21_NoBudgetMeansNoRestart) {
  EXPECT_FALSE(ledger(0).judge(failure(ExitCause::exited(1)), start).restart);
}

TEST(RestartLedger, D20_AProgramThatNeverInitialisesIsRetriedOnce) {
  RestartLedger book = ledger(5);
  EXPECT_TRUE(book.judge(failure(ExitCause::exited(2), 100), start).restart);
  const Verdict verdict = book.judge(failure(ExitCause::exited(2), 120, /*rank=*/0), start);
  EXPECT_FALSE(verdict.restart);
  EXPECT_EQ(verdict.reason, "twice in a row within 5 s of its start, so it is not started again");
}

TEST(RestartLedger, D20_AWorkerThatSaysThatTryingAgainCannotHelpIsNotRestarted) {
  RestartLedger book = ledger(5);
  WorkerFailure bad_data = failure(ExitCause::exited(2), 60'000);
  bad_data.initialised = bad_data.permanent = true;
  const Verdict verdict = book.judge(bad_data, start);
  EXPECT_FALSE(verdict.restart);
  EXPECT_EQ(verdict.reason, "it says itself that trying again would not help");
  EXPECT_EQ(book.restarts(), 0);
}

TEST(RestartLedger, D20_AnotherCodeALongerLifeOrAnInitialisedWorkerIsAnOrdinaryFailure) {
  RestartLedger book = ledger(9);
  EXPECT_TRUE(book.judge(failure(ExitCause::exited(2), 100), start).restart);
  EXPECT_TRUE(book.judge(failure(ExitCause::exited(3), 100), start).restart);
  EXPECT_TRUE(book.judge(failure(ExitCause::exited(3), 5'000), start).restart);
  EXPECT_TRUE(book.judge(failure(ExitCause::exited(3), 100), start).restart);
  WorkerFailure initialised = failure(ExitCause::exited(3), 100);
  initialised.initialised = true;
  EXPECT_TRUE(book.judge(initialised, start).restart);
}

TEST(RestartLedger, D20_WorkersKilledEarlyAreNotFailuresToStart) {
  RestartLedger book = ledger(3);
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(book.judge(failure(ExitCause::signalled(SIGKILL), 10), start).restart);
}

TEST(RestartLedger, D20_ARoundThatWorkedForgivesAFailureToStart) {
  RestartLedger book = ledger(3);
  EXPECT_TRUE(book.judge(failure(ExitCause::exited(2), 100), start).restart);
  book.round_worked();
  EXPECT_TRUE(book.judge(failure(ExitCause::exited(2), 100), start).restart);
}

TEST(RestartLedger, D20_NoCreditIsBurntOnAProgramThatIsNotThere) {
  RestartLedger book = ledger(3);
  const Verdict verdict = book.judge(failure(ExitCause::start_failed(ENOENT), 0), start);
  EXPECT_FALSE(verdict.restart);
  EXPECT_EQ(verdict.reason, "trying again would not help");
  EXPECT_EQ(book.restarts(), 0);
}

TEST(RestartLedger, D20_AStartThatFailedForWantOfMemoryIsRetriedOnce) {
  RestartLedger book = ledger(3);
  EXPECT_TRUE(book.judge(failure(ExitCause::start_failed(EAGAIN), 0), start).restart);
  EXPECT_FALSE(book.judge(failure(ExitCause::start_failed(EAGAIN), 0), start).restart);
}

TEST(RestartLedger, AWindowedBudgetIsFreshAgainOnceTheWindowHasPassed) {
  JobPolicy policy;
  policy.max_restarts = 100;
  policy.restart_window = WindowedBudget{2, 60s};
  RestartLedger book(policy);
  EXPECT_TRUE(book.judge(failure(ExitCause::exited(1)), start).restart);
  EXPECT_TRUE(book.judge(failure(ExitCause::exited(1)), start + 10s).restart);
  EXPECT_EQ(book.judge(failure(ExitCause::exited(1)), start + 59s).reason,
            "2 restarts within 1 min are used");
  EXPECT_TRUE(book.judge(failure(ExitCause::exited(1)), start + 61s).restart);
  EXPECT_FALSE(book.judge(failure(ExitCause::exited(1)), start + 62s).restart);
}

TEST(RestartLedger, AMissingNodeCostsOneRestart) {
  RestartLedger book = ledger(1);
  EXPECT_TRUE(book.judge_missing_node("n3", "lost", start).restart);
  EXPECT_THAT(book.lines(), testing::ElementsAre("n3 (lost)"));
  EXPECT_FALSE(book.judge_missing_node("n2", "lost", start).restart);
}

TEST(RestartLedger, D7_WhatWasUsedBeforeTheDaemonCameBackIsCountedOnTheLastScreenToo) {
  auto book = ledger(3);
  book.adopt(2);
  book.adopt(1);
  EXPECT_EQ(book.restarts(), 2);
  EXPECT_EQ(book.lines(), std::vector<std::string>(2, "one before the daemon came back"));
}

TEST(RestartLedger, KeepsALineForTheLastHundredRestartsOnly) {
  RestartLedger book = ledger(1000);
  for (int i = 0; i < 150; ++i)
    EXPECT_TRUE(book.judge(failure(ExitCause::exited(1), 60'000, i), start).restart);
  EXPECT_EQ(book.restarts(), 150);
  EXPECT_EQ(book.lines().size(), 100u);
  EXPECT_EQ(book.lines().front(), "rank 50 (exit 1)");
}

}  // namespace
}  // namespace muster::rendezvous
