#include "agent/core/worker_group.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>

namespace muster::agent {
namespace {

using namespace std::chrono_literals;

const Instant t0{};

WorkerGroup running_group(int size) {
  WorkerGroup group(size);
  for (int local_rank = 0; local_rank < size; ++local_rank) group.started(local_rank, 100 + local_rank, t0);
  return group;
}

TEST(WorkerGroup, F8_TheFirstFailureIsTheFirstThatWasSeenNotTheLowestRank) {
  WorkerGroup group = running_group(3);
  group.ended(2, ExitCause::exited(1), 0, t0 + 1s);
  group.ended(0, ExitCause::signalled(9), 0, t0 + 2s);
  EXPECT_EQ(group.first_failure(), 2);
  EXPECT_EQ(group.at(2).lived, 1s);
}

TEST(WorkerGroup, AWorkerThatWasAskedToStopIsNoFailureWhateverItsCode) {
  WorkerGroup group = running_group(2);
  group.at(0).asked_to_stop = true;
  group.at(0).signals = {SIGTERM};
  group.ended(0, ExitCause::signalled(SIGTERM), 0, t0);
  EXPECT_FALSE(group.first_failure());
  EXPECT_TRUE(group.at(0).cause.stopped_by_muster);
}

TEST(WorkerGroup, IsOverWhenEachEndedAndItsOutputWasTaken) {
  WorkerGroup group = running_group(2);
  group.ended(0, ExitCause::exited(0), 0, t0);
  group.ended(1, ExitCause::exited(0), 0, t0);
  EXPECT_TRUE(group.running().empty());
  EXPECT_FALSE(group.over());
  group.at(0).output_taken = group.at(1).output_taken = true;
  EXPECT_TRUE(group.over());
  EXPECT_TRUE(group.all_succeeded());
}

TEST(WorkerGroup, AfterAFailedStartTheRestIsNotWaitedFor) {
  WorkerGroup group(3);
  group.started(0, 100, t0);
  group.ended(1, ExitCause::start_failed(ENOENT), 0, t0);
  group.at(1).output_taken = true;
  EXPECT_EQ(group.first_failure(), 1);
  EXPECT_EQ(group.running(), std::vector<int>{0});
  group.ended(0, ExitCause::signalled(15), 0, t0);
  group.at(0).output_taken = true;
  EXPECT_TRUE(group.over());
  EXPECT_FALSE(group.all_succeeded());
}

TEST(WorkerGroup, TheFirstEndOfAWorkerStands) {
  WorkerGroup group = running_group(1);
  group.ended(0, ExitCause::exited(3), 0, t0);
  group.ended(0, ExitCause::exited(0), 0, t0);
  EXPECT_EQ(group.at(0).cause, ExitCause::exited(3));
}

TEST(WorkerGroup, I3_ASignalThatIsNotOursIsNotSaidToBe) {
  WorkerGroup group = running_group(2);
  for (const int local_rank : {0, 1}) {
    group.at(local_rank).asked_to_stop = true;
    group.at(local_rank).signals = {SIGTERM, SIGKILL};
  }
  group.ended(0, ExitCause::signalled(SIGSEGV), 0, t0);
  group.ended(1, ExitCause::signalled(SIGKILL), 0, t0);
  EXPECT_EQ(group.at(0).cause.sentence(),
            "was killed by SIGSEGV, not sent by muster; muster had asked it to stop before");
  EXPECT_EQ(group.at(1).cause.sentence(), "was killed by SIGKILL, sent by muster");
  EXPECT_FALSE(group.first_failure()) << "what comes of our wish is no failure of the job";
}

TEST(WorkerGroup, I3_WhoHadEndedBeforeTheSignalWasNotStoppedByIt) {
  WorkerGroup group = running_group(2);
  group.ended(0, ExitCause::exited(3), 0, t0);
  group.at(1).asked_to_stop = true;
  group.at(1).signals = {SIGTERM};
  group.at(1).ended_unasked = true;
  group.ended(1, ExitCause::exited(3), 0, t0);
  EXPECT_EQ(group.at(1).cause, ExitCause::exited(3));
  EXPECT_EQ(group.first_failure(), 0);
}

}  // namespace
}  // namespace muster::agent
