// Graces, kills, signals from outside, processes that cannot be killed.
#include "agent/core/supervisor.hpp"
#include "tests/agent/core/scene.hpp"

namespace muster::agent {
namespace {

SupervisorOptions with_graces(Graces graces) {
  SupervisorOptions options;
  options.graces = graces;
  return options;
}

TEST(SupervisorStop, AfterTheGraceTheWholeGroupIsKilled) {
  Scene scene(2, with_graces({.restart = 10s}));
  scene.runs();
  scene.ends_with_output(1, ExitCause::exited(7));
  EXPECT_EQ(scene.supervisor->wake_at(), scene.now + 10s);
  scene.after(9s);
  EXPECT_THAT(scene.effects, IsEmpty());
  scene.after(1s);
  EXPECT_EQ(scene.group_signals(), (Pairs{{0, SIGKILL}}));
  EXPECT_THAT(scene.said(), HasSubstr("1 of 2 workers did not end within 10 s"));
}

TEST(SupervisorStop, F2_StopRestartAndRescaleHaveTheirOwnGrace) {
  const SupervisorOptions options = with_graces({.stop = 60s, .restart = 10s, .rescale = 20s});
  Scene restart(1, options);
  restart.runs();
  restart.daemon(rendezvous::StopWorkers{1, "rank 5 failed"});
  EXPECT_EQ(restart.supervisor->wake_at(), restart.now + 10s);

  Scene rescale(1, options);
  rescale.runs();
  rescale.daemon(rendezvous::Drain{1, 30s, "node n2 joined"});
  rescale.daemon(rendezvous::StopWorkers{1, "node n2 joined"});
  EXPECT_EQ(rescale.supervisor->wake_at(), rescale.now + 20s);

  Scene stop(1, options);
  stop.runs();
  stop.happens(StopSignal{SIGTERM});
  EXPECT_EQ(stop.supervisor->wake_at(), stop.now + 60s);

  Scene ended(1, options);
  ended.runs();
  ended.daemon(rendezvous::JobEnded{});
  EXPECT_EQ(ended.supervisor->wake_at(), ended.now + 60s);
}

TEST(SupervisorStop, F2_WorkersThatLeaveWithinTheGraceAreNeverKilled) {
  Scene scene(1, with_graces({.stop = 60s}));
  scene.runs();
  scene.happens(StopSignal{SIGTERM});
  scene.after(45s);
  scene.ends_with_output(0, ExitCause::exited(0));
  scene.swept();
  EXPECT_EQ(scene.wanted<Finish>().size(), 1u);
  EXPECT_THAT(scene.group_signals(), IsEmpty());
}

TEST(SupervisorStop, F6_ASignalFromOutsideIsPassedOnAndTheOthersHearOfItAtOnce) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
    Scene scene;
    scene.runs();
    scene.happens(StopSignal{number});
    const Pairs both{{0, number}, {1, number}};
    const bool of_a_terminal = number == SIGINT || number == SIGQUIT;
    EXPECT_EQ(scene.main_signals(), of_a_terminal ? Pairs{} : both) << "F5: helpers of a worker get none";
    EXPECT_EQ(scene.group_signals(), of_a_terminal ? both : Pairs{});
    EXPECT_EQ(scene.sent<rendezvous::Leave>().size(), 1u);
    scene.ends_with_output(0, ExitCause::signalled(number));
    scene.ends_with_output(1, ExitCause::exited(0));
    scene.swept();
    ASSERT_EQ(scene.wanted<Finish>().size(), 1u);
    EXPECT_EQ(scene.wanted<Finish>()[0].stop_signal, number);
  }
}

TEST(SupervisorStop, F9_TermFromOutsideIsPreemptionInterruptIsTheUsersWish) {
  for (const auto& [number, kind] : {std::pair{SIGTERM, rendezvous::OutcomeKind::preempted},
                                     std::pair{SIGINT, rendezvous::OutcomeKind::stopped}}) {
    Scene scene;
    scene.happens(Begin{});
    scene.happens(StopSignal{number});
    ASSERT_EQ(scene.wanted<Finish>().size(), 1u) << "nothing runs: nothing to wait for";
    EXPECT_EQ(scene.wanted<Finish>()[0].outcome.kind, kind);
  }
}

TEST(SupervisorStop, G3_TheEndOfTheParentIsToldAsSuch) {
  Scene scene(1);
  scene.runs();
  scene.happens(StopSignal{SIGTERM, true});
  ASSERT_EQ(scene.sent<rendezvous::Leave>().size(), 1u);
  EXPECT_EQ(scene.sent<rendezvous::Leave>()[0].reason, "the process that started its launcher has ended");
  EXPECT_THAT(scene.said(),
              HasSubstr("SIGTERM came, since the process that started muster has ended: passed on to"));
  scene.ends_with_output(0, ExitCause::signalled(SIGTERM));
  scene.swept();
  ASSERT_EQ(scene.wanted<Finish>().size(), 1u);
  EXPECT_EQ(scene.wanted<Finish>()[0].outcome.reason,
            "stopped by SIGTERM, since the process that started muster has ended (--die-with-parent)");
  EXPECT_EQ(scene.wanted<Finish>()[0].stop_signal, SIGTERM);
}

TEST(SupervisorStop, ASecondSignalShortensTheGraceAThirdKills) {
  Scene scene(1, with_graces({.stop = 60s, .hurried = 3s}));
  scene.runs();
  scene.happens(StopSignal{SIGINT});
  scene.now += 1s;
  scene.happens(StopSignal{SIGINT});
  EXPECT_EQ(scene.supervisor->wake_at(), scene.now + 3s);
  EXPECT_EQ(scene.group_signals(), (Pairs{{0, SIGINT}}));
  scene.now += 200ms;
  scene.happens(StopSignal{SIGINT});
  EXPECT_EQ(scene.group_signals(), (Pairs{{0, SIGKILL}}));
}

TEST(SupervisorStop, F2_TheSameSignalTwiceAtOnceIsOne) {
  Scene scene(1, with_graces({.stop = 60s, .hurried = 3s}));
  scene.runs();
  scene.happens(StopSignal{SIGTERM});
  const auto deadline = scene.now + 60s;
  scene.now += 2ms;
  scene.happens(StopSignal{SIGTERM});
  EXPECT_EQ(scene.supervisor->wake_at(), deadline)
      << "`timeout` signals its child and then the child's group";
  scene.happens(StopSignal{SIGINT});
  EXPECT_EQ(scene.supervisor->wake_at(), scene.now + 3s) << "another one is meant";
}

TEST(SupervisorStop, TheGraceThatIsToldIsTheOneThatWasGiven) {
  for (const auto& [signals, grace] : {std::pair{1, Duration(60s)}, {2, Duration(3s)}, {3, Duration(0s)}}) {
    Scene scene(1, with_graces({.stop = 60s, .hurried = 3s}));
    scene.runs();
    for (int count = 0; count < signals; ++count, scene.now += 200ms) scene.happens(StopSignal{SIGINT});
    scene.ends_with_output(0, ExitCause::signalled(SIGKILL));
    scene.swept();
    ASSERT_EQ(scene.wanted<Finish>().size(), 1u);
    EXPECT_EQ(scene.wanted<Finish>()[0].stop_grace, grace) << signals;
  }
}

TEST(SupervisorStop, F7_AnInterruptPrintsOneLine) {
  Scene scene;
  scene.runs();
  scene.happens(StopSignal{SIGINT});
  std::string said = scene.said();
  scene.ends_with_output(0, ExitCause::signalled(SIGINT));
  said += scene.said();
  scene.ends_with_output(1, ExitCause::signalled(SIGINT));
  said += scene.said();
  scene.swept();
  said += scene.said();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
}

TEST(SupervisorStop, TheDaemonsEndDoesNotCutTheGraceOfASignal) {
  Scene scene;
  scene.runs();
  scene.happens(StopSignal{SIGTERM});
  scene.daemon(rendezvous::JobEnded{{rendezvous::OutcomeKind::stopped, "n1 left", {}, {}, 0}});
  EXPECT_THAT(scene.effects, IsEmpty());
  EXPECT_EQ(scene.supervisor->wake_at(), scene.now + 30s);
}

TEST(SupervisorStop, AWorkerThatFailsAfterTheSignalIsNoFailure) {
  Scene scene;
  scene.runs();
  scene.happens(StopSignal{SIGTERM});
  scene.ends_with_output(0, ExitCause::exited(1));
  EXPECT_THAT(scene.sent<rendezvous::WorkerFailed>(), IsEmpty());
  EXPECT_EQ(scene.said(), "");
}

TEST(SupervisorStop, JobEndedStopsWhatRunsThenFinishes) {
  Scene scene;
  scene.runs();
  rendezvous::Outcome outcome;
  outcome.kind = rendezvous::OutcomeKind::failed;
  outcome.reason = "rank 5 on n3 failed";
  scene.daemon(rendezvous::JobEnded{outcome});
  EXPECT_EQ(scene.main_signals(), (Pairs{{0, SIGTERM}, {1, SIGTERM}}));
  scene.ends_with_output(0, ExitCause::signalled(15));
  scene.ends_with_output(1, ExitCause::signalled(15));
  scene.swept();
  ASSERT_EQ(scene.wanted<Finish>().size(), 1u);
  EXPECT_EQ(scene.wanted<Finish>()[0].outcome, outcome);
  EXPECT_EQ(scene.wanted<Finish>()[0].stop_signal, 0);
  EXPECT_THAT(scene.wanted<Finish>()[0].survivors, IsEmpty());
}

// A Ctrl-C on all nodes: the first to leave is heard of before this node's own signal comes.
TEST(SupervisorStop, G2_WhoIsStoppedWhileAnotherNodesLeavingEndsTheJobWasStoppedToo) {
  for (const auto kind : {rendezvous::OutcomeKind::preempted, rendezvous::OutcomeKind::failed}) {
    Scene scene;
    scene.runs();
    scene.daemon(rendezvous::JobEnded{{kind, "n1 leaves", {}, {}, 0}});
    scene.happens(StopSignal{SIGINT});
    EXPECT_THAT(scene.sent<rendezvous::Leave>(), IsEmpty());
    scene.ends_with_output(0, ExitCause::signalled(SIGINT));
    scene.ends_with_output(1, ExitCause::signalled(SIGINT));
    scene.swept();
    ASSERT_EQ(scene.wanted<Finish>().size(), 1u);
    const auto finish = scene.wanted<Finish>()[0];
    const bool was_stopped = kind == rendezvous::OutcomeKind::preempted;
    EXPECT_EQ(finish.stop_signal, was_stopped ? SIGINT : 0);
    EXPECT_EQ(finish.outcome.reason, was_stopped ? "stopped by SIGINT from outside" : "n1 leaves");
  }
}

TEST(SupervisorStop, G4_AWorkerThatOutlivesSigkillIsNamedAndNotWaitedFor) {
  Scene scene(2, with_graces({.stop = 10s}));
  scene.runs();
  scene.happens(StopSignal{SIGTERM});
  scene.ends_with_output(0, ExitCause::signalled(15));
  scene.after(10s);
  EXPECT_EQ(scene.group_signals(), (Pairs{{1, SIGKILL}}));
  scene.after(5s);
  ASSERT_EQ(scene.wanted<DescribeWorker>().size(), 1u);
  scene.happens(WorkerState{1, "pid 101 is in state D (uninterruptible sleep)"});
  EXPECT_THAT(scene.said(), HasSubstr("outlived SIGKILL: pid 101 is in state D"));
  EXPECT_EQ(scene.wanted<SweepGroup>().size(), 1u);
  scene.swept();
  ASSERT_EQ(scene.wanted<Finish>().size(), 1u);
  EXPECT_EQ(scene.wanted<Finish>()[0].survivors.size(), 1u);
}

TEST(SupervisorStop, G8_NoNewRoundStartsOnANodeWhereSomethingSurvived) {
  Scene scene(1);
  scene.runs();
  scene.daemon(rendezvous::StopWorkers{1, "rank 5 failed"});
  scene.ends_with_output(0, ExitCause::signalled(15));
  scene.swept({"pid 4711 is in state D (uninterruptible sleep)"});
  EXPECT_THAT(scene.sent<rendezvous::Join>(), IsEmpty());
  EXPECT_EQ(scene.sent<rendezvous::Leave>().size(), 1u);
  ASSERT_EQ(scene.wanted<Finish>().size(), 1u);
  EXPECT_EQ(scene.wanted<Finish>()[0].outcome.kind, rendezvous::OutcomeKind::failed);
  EXPECT_EQ(scene.wanted<Finish>()[0].survivors.size(), 1u);
}

TEST(SupervisorStop, F5_WhatIsLeftOfAnEndedWorkerIsNamedNotTheWorker) {
  Scene scene(2, with_graces({.stop = 10s}));
  scene.runs();
  scene.happens(StopSignal{SIGTERM});
  scene.happens(MainEnded{0});
  scene.after(10s);
  EXPECT_EQ(scene.group_signals(), (Pairs{{0, SIGKILL}, {1, SIGKILL}}));
  EXPECT_THAT(scene.said(), HasSubstr("1 of 2 workers did not end within 10 s and are killed, rank 1 "));
  EXPECT_THAT(scene.said(), Not(HasSubstr("rank 0")));
  scene.happens(RestKilled{0, "pid 4712 (sleep 600)"});
  EXPECT_THAT(scene.said(),
              HasSubstr("rank 0 (local 0, pid 100) has ended, but what it left behind, pid 4712 "
                        "(sleep 600), did not end within 10 s and is killed"));
}

// ---- F4: those that can be asked save before they are signalled ----

TEST(SupervisorStop, F4_AfterTermWorkersThatListenAreAskedToSaveAndTheOthersSignalledAtOnce) {
  Scene scene(2, with_graces({.stop = 20s}));
  scene.runs();
  scene.happens(WorkerListens{1});
  scene.happens(StopSignal{SIGTERM});
  EXPECT_EQ(scene.main_signals(), (Pairs{{0, SIGTERM}}));
  ASSERT_EQ(scene.wanted<AskToSave>().size(), 1u);
  EXPECT_EQ(scene.wanted<AskToSave>()[0].local_rank, 1);
  EXPECT_EQ(scene.wanted<AskToSave>()[0].grace, 15s) << "a quarter is kept for SIGTERM, 5 s at most";
  EXPECT_EQ(scene.sent<rendezvous::Leave>().size(), 1u) << "so that the other nodes' workers are asked too";
  EXPECT_THAT(scene.said(), HasSubstr("1 worker asked to save, passed on to 1 worker; 20 s to leave"));
}

TEST(SupervisorStop, F4_TheDrainThatFollowsAsksNobodyASecondTime) {
  Scene scene;
  scene.runs();
  scene.happens(WorkerListens{0});
  scene.happens(WorkerListens{1});
  scene.happens(StopSignal{SIGTERM});
  scene.daemon(rendezvous::Drain{1, 30s, "n1 leaves"});
  EXPECT_THAT(scene.wanted<AskToSave>(), IsEmpty());
  scene.happens(WorkerSafe{0, 7});
  EXPECT_THAT(scene.effects, IsEmpty()) << "the other still saves";
  scene.happens(WorkerSafe{1, 7});
  ASSERT_EQ(scene.sent<rendezvous::WorkersSafe>().size(), 1u);
  EXPECT_EQ(scene.sent<rendezvous::WorkersSafe>()[0].step, 7);
  scene.daemon(rendezvous::JobEnded{});
  EXPECT_THAT(scene.main_signals(), IsEmpty()) << "they have saved, and leave by themselves";
}

TEST(SupervisorStop, F4_WhoSavedAndDoesNotLeaveGetsTheSignalInTime) {
  Scene scene(2, with_graces({.rescale = 20s}));
  scene.runs();
  scene.happens(WorkerListens{0});
  scene.daemon(rendezvous::Drain{1, 30s, "n2 leaves"});
  scene.happens(WorkerSafe{0, 7});
  scene.daemon(rendezvous::StopWorkers{1, "n2 leaves"});
  EXPECT_EQ(scene.main_signals(), (Pairs{{1, SIGTERM}})) << "which cannot be asked";
  EXPECT_EQ(scene.supervisor->wake_at(), scene.now + 15s);
  scene.after(15s);
  EXPECT_EQ(scene.main_signals(), (Pairs{{0, SIGTERM}}));
  scene.after(5s);
  EXPECT_EQ(scene.group_signals(), (Pairs{{0, SIGKILL}, {1, SIGKILL}}));
}

TEST(SupervisorStop, F4_WhoDoesNotSaveGetsTheSignalBeforeTheGraceIsOver) {
  Scene scene(1, with_graces({.stop = 60s}));
  scene.runs();
  scene.happens(WorkerListens{0});
  scene.happens(StopSignal{SIGTERM});
  EXPECT_THAT(scene.main_signals(), IsEmpty());
  EXPECT_EQ(scene.supervisor->wake_at(), scene.now + 55s);
  scene.after(55s);
  EXPECT_EQ(scene.main_signals(), (Pairs{{0, SIGTERM}}));
  scene.after(5s);
  EXPECT_EQ(scene.group_signals(), (Pairs{{0, SIGKILL}}));
}

TEST(SupervisorStop, F4_WhoFailsWhileSavingHoldsTheOthersNoLonger) {
  Scene scene;
  scene.runs();
  scene.happens(WorkerListens{0});
  scene.happens(WorkerListens{1});
  scene.happens(StopSignal{SIGTERM});
  scene.ends(0, ExitCause::exited(1));
  EXPECT_EQ(scene.main_signals(), (Pairs{{1, SIGTERM}}));
  EXPECT_THAT(scene.sent<rendezvous::WorkerFailed>(), IsEmpty());
}

TEST(SupervisorStop, F4_WhoSavesAndLeavesEndsTheJobHere) {
  Scene scene(1);
  scene.runs();
  scene.happens(WorkerListens{0});
  scene.happens(StopSignal{SIGTERM});
  scene.happens(WorkerSafe{0, 7});
  scene.ends_with_output(0, ExitCause::exited(0));
  scene.swept();
  ASSERT_EQ(scene.wanted<Finish>().size(), 1u);
  EXPECT_EQ(scene.wanted<Finish>()[0].stop_signal, SIGTERM);
  EXPECT_TRUE(scene.supervisor->group().at(0).cause.stopped_by_muster);
}

TEST(SupervisorStop, F4_ASecondSignalReachesThoseThatWereAskedToSave) {
  Scene scene(1, with_graces({.stop = 60s, .hurried = 3s}));
  scene.runs();
  scene.happens(WorkerListens{0});
  scene.happens(StopSignal{SIGTERM});
  scene.now += 200ms;
  scene.happens(StopSignal{SIGTERM});
  EXPECT_EQ(scene.main_signals(), (Pairs{{0, SIGTERM}}));
  EXPECT_EQ(scene.supervisor->wake_at(), scene.now + 3s);
}

TEST(SupervisorStop, F4_ACtrlCAsksNobodyToSave) {
  Scene scene(1);
  scene.runs();
  scene.happens(WorkerListens{0});
  scene.happens(StopSignal{SIGINT});
  EXPECT_THAT(scene.wanted<AskToSave>(), IsEmpty());
  EXPECT_EQ(scene.group_signals(), (Pairs{{0, SIGINT}}));
}

TEST(SupervisorStop, F2_WhatTheRendezvousSaysDoesNotShortenTheGraceOfASignal) {
  Scene scene(1, with_graces({.stop = 60s, .restart = 10s, .rescale = 10s}));
  scene.runs();
  scene.happens(StopSignal{SIGTERM});
  scene.daemon(rendezvous::Drain{1, 10s, "n1 leaves"});
  scene.daemon(rendezvous::StopWorkers{1, "n1 leaves"});
  EXPECT_THAT(scene.main_signals(), IsEmpty());
  EXPECT_EQ(scene.supervisor->wake_at(), scene.now + 60s);
}

TEST(SupervisorStop, F2_ASignalDuringTheStopOfARestartGivesItsWholeGrace) {
  Scene scene(2, with_graces({.stop = 20s, .restart = 3s}));
  scene.runs();
  scene.ends_with_output(0, ExitCause::exited(1));
  EXPECT_EQ(scene.supervisor->wake_at(), scene.now + 3s);
  scene.after(500ms);
  scene.happens(StopSignal{SIGTERM});
  EXPECT_THAT(scene.said(), HasSubstr("; 20 s to leave"));
  EXPECT_EQ(scene.supervisor->wake_at(), scene.now + 20s);
  scene.daemon(rendezvous::StopWorkers{1, "rank 0 failed"});
  EXPECT_EQ(scene.supervisor->wake_at(), scene.now + 20s);
  scene.after(20s);
  EXPECT_THAT(scene.said(), HasSubstr("did not end within 20 s and are killed"));
  scene.ends_with_output(1, ExitCause::signalled(SIGKILL));
  scene.swept();
  EXPECT_EQ(scene.wanted<Finish>().at(0).stop_grace, 20s);
}

TEST(SupervisorStop, F2_OfAJobThatIsOverASignalTellsTheTimeThatIsLeft) {
  Scene scene(1, with_graces({.stop = 20s}));
  scene.runs();
  scene.daemon(rendezvous::JobEnded{});
  scene.after(8s);
  scene.happens(StopSignal{SIGTERM});
  EXPECT_THAT(scene.said(), HasSubstr("; 12 s to leave"));
  EXPECT_EQ(scene.supervisor->wake_at(), scene.now + 12s);
}

TEST(SupervisorStop, WhatIsKilledAtOnceIsSaidSo) {
  Scene scene(1, with_graces({.stop = 20s}));
  scene.runs();
  for (int count = 0; count < 3; ++count, scene.now += 200ms) scene.happens(StopSignal{SIGINT});
  EXPECT_THAT(scene.said(), HasSubstr("1 of 1 workers are killed at once"));
}

// ---- warnings ----

TEST(SupervisorStop, F10_AWarningIsPassedOnAndTheJobGoesOn) {
  Scene scene;
  scene.runs();
  scene.happens(WarningSignal{SIGUSR1});
  ASSERT_EQ(scene.wanted<PassOnSignal>().size(), 1u);
  EXPECT_EQ(scene.wanted<PassOnSignal>()[0].signal_number, SIGUSR1);
  scene.happens(SignalPassedOn{SIGUSR1, 1, 1});
  EXPECT_THAT(scene.said(),
              HasSubstr("SIGUSR1 came: passed on to 1 worker, not to 1 worker without a handler"));
  EXPECT_THAT(scene.said(), HasSubstr("the job goes on"));
  EXPECT_FALSE(scene.supervisor->wake_at());
  scene.ends_with_output(0, ExitCause::exited(0));
  EXPECT_FALSE(scene.supervisor->group().at(0).cause.stopped_by_muster);
}

TEST(SupervisorStop, F10_AWarningThatNobodyCouldHearIsSaid) {
  Scene scene;
  scene.happens(Begin{});
  scene.happens(WarningSignal{SIGUSR2});
  EXPECT_THAT(scene.said(), HasSubstr("SIGUSR2 came: no worker runs"));
}

TEST(SupervisorStop, NothingIsDoneAfterTheEnd) {
  Scene scene;
  scene.happens(Begin{});
  scene.happens(StopSignal{SIGINT});
  scene.assigned(1);
  EXPECT_THAT(scene.effects, IsEmpty());
  EXPECT_FALSE(scene.supervisor->wake_at());
}

}  // namespace
}  // namespace muster::agent
