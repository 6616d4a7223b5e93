// Joining, failing, restarting, succeeding.
#include "agent/core/supervisor.hpp"

#include <cerrno>

#include "tests/agent/core/scene.hpp"

namespace muster::agent {
namespace {

TEST(Supervisor, OpensAStoreBeforeItJoinsAndOffersItsPort) {
  Scene scene;
  scene.happens(Begin{});
  ASSERT_EQ(scene.wanted<OpenStore>().size(), 1u);
  ASSERT_EQ(scene.sent<rendezvous::Join>().size(), 1u);
  EXPECT_EQ(scene.sent<rendezvous::Join>()[0].offer.store_port, 4001);
  EXPECT_EQ(scene.sent<rendezvous::Join>()[0].offer.node, "n1");
}

TEST(Supervisor, EndsAtOnceWhenNoStoreCanBeOpened) {
  Scene scene;
  scene.supervisor->step(Begin{}, scene.now);
  scene.happens(StoreFailed{"127.0.0.1: Too many open files (EMFILE)"});
  ASSERT_EQ(scene.wanted<Finish>().size(), 1u);
  EXPECT_EQ(scene.wanted<Finish>()[0].outcome.kind, rendezvous::OutcomeKind::failed);
}

TEST(Supervisor, AStoreThatCannotBeOpenedAfterAFailureIsToldAndTheFailureStaysTheFirst) {
  Scene scene(1);
  scene.runs();
  scene.ends_with_output(0, ExitCause::start_failed(EMFILE));
  scene.swept();
  scene.daemon(rendezvous::StopWorkers{1, "restart 1 of 1"});
  scene.happens(StoreFailed{"listening on 127.0.0.1:0: Too many open files (EMFILE)"});
  ASSERT_EQ(scene.sent<rendezvous::Leave>().size(), 1u);
  EXPECT_EQ(scene.sent<rendezvous::Leave>()[0].reason,
            "listening on 127.0.0.1:0: Too many open files (EMFILE)");
  ASSERT_EQ(scene.wanted<Finish>().size(), 1u);
  const rendezvous::Outcome outcome = scene.wanted<Finish>()[0].outcome;
  ASSERT_TRUE(outcome.first_failure);
  EXPECT_EQ(outcome.first_failure->cause, ExitCause::start_failed(EMFILE));
}

TEST(Supervisor, SaysWhyItWaitsOnceForEachReason) {
  Scene scene;
  scene.happens(Begin{});
  scene.daemon(rendezvous::Waiting{"waiting for 1 more node"});
  EXPECT_THAT(scene.said(), HasSubstr("1 more node"));
  EXPECT_THAT(scene.supervisor->reason(), HasSubstr("1 more node"));
  scene.daemon(rendezvous::Waiting{"waiting for 1 more node"});
  EXPECT_EQ(scene.said(), "");
}

TEST(Supervisor, StartsTheWorkersOfItsAssignment) {
  Scene scene;
  scene.happens(Begin{});
  scene.assigned(1);
  ASSERT_EQ(scene.wanted<StartWorkers>().size(), 1u);
  EXPECT_EQ(scene.wanted<StartWorkers>()[0].assignment.round, 1);
  EXPECT_THAT(scene.wanted<CloseStore>(), IsEmpty());
}

TEST(Supervisor, TheRoundIsAnnouncedOnceItsWorkersAreStarted) {
  Scene scene;
  scene.happens(Begin{});
  scene.assigned(1);
  scene.happens(WorkerStarted{0, 100, scene.now});
  EXPECT_EQ(scene.said(), "");
  scene.happens(WorkerStarted{1, 101, scene.now});
  EXPECT_THAT(scene.said(), HasSubstr("round 1: 1 node, 2 workers, ranks 0-1 here; master 127.0.0.1:4001"));
  EXPECT_THAT(scene.said(), Not(HasSubstr("spawn"))) << "nothing came before the first round";
}

TEST(Supervisor, ARoundWhoseWorkersCannotBeStartedIsAnnouncedBeforeTheFailure) {
  Scene scene;
  scene.happens(Begin{});
  scene.assigned(1);
  scene.ends(0, ExitCause::start_failed(2));
  EXPECT_THAT(scene.said(), ::testing::StartsWith("round 1: "));
}

TEST(Supervisor, EachPhaseBetweenTwoRoundsIsTimed) {
  Scene scene(1);
  scene.runs();
  scene.now += 60s;
  scene.ends(0, ExitCause::exited(7));
  scene.now += 20ms;
  scene.output(0);
  scene.now += 3ms;
  scene.swept();
  scene.daemon(rendezvous::StopWorkers{1, "restart 1 of 3"});
  scene.now += 9ms;
  scene.assigned(2);
  scene.now += 14ms;
  scene.happens(WorkerStarted{0, 200, scene.now});
  EXPECT_THAT(scene.said(),
              HasSubstr("(detect 20 ms, tell 3 ms, stop under 1 ms, rendezvous 9 ms, spawn 14 ms)"));
  ASSERT_EQ(scene.supervisor->rounds().size(), 2u);
  EXPECT_EQ(scene.supervisor->rounds()[1].round, 2);
  EXPECT_EQ(phases_text(scene.supervisor->rounds()[0].phases), "rendezvous under 1 ms, spawn under 1 ms");
}

TEST(Supervisor, AChangeOfSizeIsTimedFromItsDrain) {
  Scene scene(1);
  scene.runs();
  scene.happens(WorkerListens{0});
  scene.daemon(rendezvous::Drain{1, 30s, "n3 joined"});
  scene.now += 600ms;
  scene.happens(WorkerSafe{0, 812});
  scene.daemon(rendezvous::StopWorkers{1, "n3 joined"});
  scene.now += 100ms;
  scene.ends_with_output(0, ExitCause::exited(0));
  scene.swept();
  scene.now += 9ms;
  scene.assigned(2);
  scene.now += 14ms;
  scene.happens(WorkerStarted{0, 200, scene.now});
  EXPECT_THAT(scene.said(), HasSubstr("(drain 0.6 s, stop 0.1 s, rendezvous 9 ms, spawn 14 ms)"));
}

TEST(Supervisor, OfManyRoundsTheNewestAreKept) {
  Scene scene(1);
  scene.runs();
  for (int round = 2; round <= 150; ++round) {
    scene.ends_with_output(0, ExitCause::exited(7));
    scene.swept();
    scene.daemon(rendezvous::StopWorkers{round - 1, "a restart"});
    scene.runs(round);
  }
  EXPECT_EQ(scene.supervisor->rounds().size(), kMaxRoundRecords);
  EXPECT_EQ(scene.supervisor->rounds().back().round, 150);
}

TEST(Supervisor, OnlyTheNodeWithGroupRank0KeepsItsStore) {
  Scene scene;
  scene.happens(Begin{});
  scene.assigned(1, /*group_rank=*/1);
  ASSERT_EQ(scene.wanted<CloseStore>().size(), 1u);
  EXPECT_EQ(scene.wanted<CloseStore>()[0].number, 1);
}

TEST(Supervisor, IgnoresAnAssignmentOfARoundItHasSeen) {
  Scene scene;
  scene.runs();
  scene.assigned(1);
  EXPECT_THAT(scene.effects, IsEmpty());
}

TEST(Supervisor, H5_OneWorkerFailsAndItsSiblingsAreStoppedAtOnce) {
  Scene scene(3);
  scene.runs();
  scene.ends(1, ExitCause::exited(7));
  EXPECT_EQ(scene.main_signals(), (Pairs{{0, SIGTERM}, {2, SIGTERM}}));
  EXPECT_THAT(scene.group_signals(), IsEmpty());
}

TEST(Supervisor, I3_TheFirstLineNamesTheRankThatFailed) {
  Scene scene(3);
  scene.runs();
  scene.ends(1, ExitCause::signalled(9));
  EXPECT_EQ(scene.said(),
            "rank 1 (local 1, pid 101) was killed by SIGKILL, not sent by muster; "
            "stopping the other 2 workers here\n");
  scene.ends(0, ExitCause::signalled(15));
  EXPECT_EQ(scene.said(), "");
}

TEST(Supervisor, TheFailureIsReportedWithItsLastLinesOnceTheyAreRead) {
  Scene scene;
  scene.runs();
  scene.now += 1500ms;
  scene.ends(1, ExitCause::exited(7));
  EXPECT_THAT(scene.sent<rendezvous::WorkerFailed>(), IsEmpty());
  scene.output(1);
  ASSERT_EQ(scene.sent<rendezvous::WorkerFailed>().size(), 1u);
  const rendezvous::WorkerFailure failure = scene.sent<rendezvous::WorkerFailed>()[0].failure;
  EXPECT_EQ(failure.rank, 1);
  EXPECT_EQ(failure.pid, 101);
  EXPECT_EQ(failure.round, 1);
  EXPECT_EQ(failure.host, "host1");
  EXPECT_EQ(failure.lived_ms, 1500);
  EXPECT_EQ(failure.unix_time_ms, 77);
  EXPECT_EQ(failure.cause, ExitCause::exited(7));
  EXPECT_EQ(failure.message, "boom");
  EXPECT_THAT(failure.last_lines, ElementsAre("last line"));
}

TEST(Supervisor, AFailureTellsWhetherTheWorkerHadGotGoing) {
  for (const bool progressed : {false, true}) {
    for (const bool store_opened : {false, true}) {
      Scene scene;
      scene.runs();
      if (progressed) scene.happens(WorkerProgress{1, 1});
      scene.ends(1, ExitCause::exited(7));
      scene.happens(WorkerOutput{1, store_opened, false, "", {}, ""});
      ASSERT_EQ(scene.sent<rendezvous::WorkerFailed>().size(), 1u);
      EXPECT_EQ(scene.sent<rendezvous::WorkerFailed>()[0].failure.initialised, progressed || store_opened);
    }
  }
}

TEST(Supervisor, AWorkersLifeBeginsWithItsOwnStartNotWithTheLastOnes) {
  Scene scene;
  scene.happens(Begin{});
  scene.assigned(1);
  const Instant first = scene.now;
  scene.now += 2s;
  scene.happens(WorkerStarted{0, 100, first});
  scene.happens(WorkerStarted{1, 101, scene.now});
  scene.now += 4s;
  scene.ends(0, ExitCause::exited(3));
  scene.output(0);
  ASSERT_EQ(scene.sent<rendezvous::WorkerFailed>().size(), 1u);
  EXPECT_EQ(scene.sent<rendezvous::WorkerFailed>()[0].failure.lived_ms, 6000);
}

TEST(Supervisor, OnlyTheFirstFailureIsReportedTheOthersAreRecordedAsStoppedByMuster) {
  Scene scene;
  scene.runs();
  scene.ends_with_output(1, ExitCause::exited(7));
  scene.ends_with_output(0, ExitCause::exited(1));
  EXPECT_THAT(scene.sent<rendezvous::WorkerFailed>(), IsEmpty());
  EXPECT_TRUE(scene.supervisor->group().at(0).cause.stopped_by_muster);
  EXPECT_FALSE(scene.supervisor->group().at(1).cause.stopped_by_muster);
}

TEST(Supervisor, AFailedStartIsAFailureAndStopsThoseThatWereStarted) {
  Scene scene(3);
  scene.happens(Begin{});
  scene.assigned(1);
  scene.happens(WorkerStarted{0, 100, scene.now});
  scene.ends_with_output(1, ExitCause::start_failed(2));
  ASSERT_EQ(scene.sent<rendezvous::WorkerFailed>().size(), 1u);
  scene.ends_with_output(0, ExitCause::signalled(15));
  EXPECT_EQ(scene.wanted<SweepGroup>().size(), 1u);
}

TEST(Supervisor, WorkersStoppedIsSentWhenNothingOfThemIsLeftAndThenItJoinsAgain) {
  Scene scene;
  scene.runs();
  scene.ends_with_output(1, ExitCause::exited(7));
  scene.daemon(rendezvous::StopWorkers{1, "rank 1 failed"});
  EXPECT_THAT(scene.main_signals(), IsEmpty()) << "rank 0 has its SIGTERM already";
  scene.ends_with_output(0, ExitCause::signalled(15));
  EXPECT_EQ(scene.wanted<SweepGroup>().size(), 1u);
  EXPECT_THAT(scene.sent<rendezvous::WorkersStopped>(), IsEmpty());
  scene.swept();
  ASSERT_EQ(scene.sent<rendezvous::WorkersStopped>().size(), 1u);
  ASSERT_EQ(scene.sent<rendezvous::Join>().size(), 1u);
  EXPECT_EQ(scene.sent<rendezvous::Join>()[0].offer.store_port, 4002);
}

TEST(Supervisor, D7_ItsNextJoinTellsWhyTheRoundEndedAndWhatThatCost) {
  Scene scene;
  scene.runs();
  scene.daemon(rendezvous::StopWorkers{1, "round 1 was ending when the daemon came back", 0, false});
  scene.daemon(rendezvous::StopWorkers{1, "restart 1 of 3 after rank 4 on n3 exited with code 7", 1});
  scene.daemon(rendezvous::StopWorkers{1, "something later", 1});
  scene.ends_with_output(0, ExitCause::signalled(15));
  scene.ends_with_output(1, ExitCause::signalled(15));
  scene.swept();
  ASSERT_EQ(scene.sent<rendezvous::Join>().size(), 1u);
  const auto join = scene.sent<rendezvous::Join>()[0];
  EXPECT_EQ(join.last_round, 1);
  EXPECT_EQ(join.restart_count, 1);
  EXPECT_EQ(join.why_ended, "restart 1 of 3 after rank 4 on n3 exited with code 7");
}

TEST(Supervisor, AFailureTellsHowLongAgoTheWorkerEnded) {
  Scene scene;
  scene.runs();
  scene.ends(1, ExitCause::exited(7));
  scene.after(300ms);
  scene.output(1);
  ASSERT_EQ(scene.sent<rendezvous::WorkerFailed>().size(), 1u);
  EXPECT_EQ(scene.sent<rendezvous::WorkerFailed>()[0].age, 300ms);
}

TEST(Supervisor, TheOldStoreServesUntilTheNextRoundHasFormed) {
  Scene scene;
  scene.runs();
  scene.daemon(rendezvous::StopWorkers{1, "a node joins"});
  scene.ends_with_output(0, ExitCause::signalled(15));
  scene.ends_with_output(1, ExitCause::signalled(15));
  scene.swept();
  EXPECT_THAT(scene.wanted<CloseStore>(), IsEmpty());
  scene.assigned(2);
  ASSERT_EQ(scene.wanted<CloseStore>().size(), 1u);
  EXPECT_EQ(scene.wanted<CloseStore>()[0].number, 1);
}

TEST(Supervisor, StopWorkersOfAnotherRoundIsStale) {
  Scene scene;
  scene.runs();
  scene.daemon(rendezvous::StopWorkers{7, "?"});
  EXPECT_THAT(scene.effects, IsEmpty());
}

TEST(Supervisor, StopWorkersAfterAllEndedIsAnsweredAtOnce) {
  Scene scene;
  scene.runs();
  scene.ends_with_output(1, ExitCause::exited(7));
  scene.ends_with_output(0, ExitCause::signalled(15));
  scene.swept();
  EXPECT_THAT(scene.supervisor->reason(), HasSubstr("waiting for the rendezvous to decide"));
  scene.daemon(rendezvous::StopWorkers{1, "rank 1 failed"});
  EXPECT_EQ(scene.sent<rendezvous::WorkersStopped>().size(), 1u);
}

TEST(Supervisor, SuccessIsToldOnceAndTheJobsEndIsWaitedFor) {
  Scene scene;
  scene.runs();
  scene.ends_with_output(1, ExitCause::exited(0));
  EXPECT_THAT(scene.main_signals(), IsEmpty());
  scene.ends_with_output(0, ExitCause::exited(0));
  scene.swept();
  EXPECT_EQ(scene.sent<rendezvous::WorkersSucceeded>().size(), 1u);
  EXPECT_THAT(scene.wanted<Finish>(), IsEmpty());
  scene.after(1s);
  EXPECT_THAT(scene.effects, IsEmpty());
  scene.daemon(rendezvous::JobEnded{});
  ASSERT_EQ(scene.wanted<Finish>().size(), 1u);
  EXPECT_EQ(scene.wanted<Finish>()[0].outcome.kind, rendezvous::OutcomeKind::succeeded);
  EXPECT_TRUE(scene.supervisor->finished());
}

TEST(Supervisor, ProgressIsPassedOnOnceASecond) {
  Scene scene;
  scene.runs();
  for (const int step : {42, 2000}) {
    scene.happens(WorkerProgress{1, step});
    ASSERT_EQ(scene.sent<rendezvous::Progress>().size(), 1u);
    EXPECT_EQ(scene.sent<rendezvous::Progress>()[0].step, step);
    scene.happens(WorkerProgress{1, step + 1});
    EXPECT_THAT(scene.sent<rendezvous::Progress>(), IsEmpty());
    scene.after(1s);
  }
}

TEST(Supervisor, TheFirstStepOfARoundIsPassedOnAtOnce) {
  Scene scene(1);
  scene.runs();
  scene.happens(WorkerProgress{0, 5});
  scene.daemon(rendezvous::StopWorkers{1, "node n2 joined"});
  scene.ends_with_output(0, ExitCause::signalled(15));
  scene.swept();
  scene.runs(2);
  scene.happens(WorkerProgress{0, 6});
  EXPECT_EQ(scene.sent<rendezvous::Progress>().size(), 1u) << "newcomers wait for it";
}

TEST(Supervisor, WhatAWorkerSaysAfterItsRoundIsNotHeard) {
  Scene scene(1);
  scene.runs();
  scene.daemon(rendezvous::StopWorkers{1, "node n2 joined"});
  scene.ends_with_output(0, ExitCause::signalled(15));
  scene.swept();
  scene.happens(WorkerListens{0});
  scene.happens(WorkerProgress{0, 1});
  scene.happens(WorkerSafe{0, 1});
  scene.happens(WorkerDeaf{0});
  EXPECT_THAT(scene.sent<rendezvous::Progress>(), IsEmpty());
}

TEST(Supervisor, ARefusalEndsTheJobHereWithItsReason) {
  Scene scene;
  scene.runs();
  scene.daemon(rendezvous::Refused{rendezvous::RefusalCode::job_over, "job mnist ended 3 s ago"});
  EXPECT_EQ(scene.main_signals(), (Pairs{{0, SIGTERM}, {1, SIGTERM}}));
  scene.ends_with_output(0, ExitCause::signalled(15));
  scene.ends_with_output(1, ExitCause::signalled(15));
  scene.swept();
  ASSERT_EQ(scene.wanted<Finish>().size(), 1u);
  EXPECT_EQ(scene.wanted<Finish>()[0].outcome.kind, rendezvous::OutcomeKind::rendezvous_failed);
  EXPECT_EQ(scene.wanted<Finish>()[0].outcome.reason, "job mnist ended 3 s ago");
}

}  // namespace
}  // namespace muster::agent
