// What workers say of themselves: that they have saved, that they are done.
#include "agent/core/supervisor.hpp"

#include "tests/agent/core/scene.hpp"

namespace muster::agent {
namespace {

Scene scene_that_expects_done() {
  SupervisorOptions options;
  options.success_needs = SuccessNeeds::exit_0_after_done;
  return Scene(2, options);
}
TEST(SupervisorWords, ADrainIsAnsweredAtOnceWhenNoWorkerCanBeAsked) {
  Scene scene;
  scene.runs();
  scene.daemon(rendezvous::Drain{1, 30s, "node n2 joined"});
  ASSERT_EQ(scene.sent<rendezvous::WorkersSafe>().size(), 1u);
  EXPECT_EQ(scene.sent<rendezvous::WorkersSafe>()[0].step, -1);
  EXPECT_THAT(scene.main_signals(), IsEmpty());
}

TEST(SupervisorWords, ADrainIsAnsweredWhenEachListenerHasSavedOrEnded) {
  Scene scene(3);
  scene.runs();
  scene.happens(WorkerListens{0});
  scene.happens(WorkerListens{1});
  scene.daemon(rendezvous::Drain{1, 30s, "node n2 joined"});
  ASSERT_EQ(scene.wanted<AskToSave>().size(), 2u);
  EXPECT_EQ(scene.wanted<AskToSave>()[0].grace, 30s);
  EXPECT_THAT(scene.sent<rendezvous::WorkersSafe>(), IsEmpty());
  scene.happens(WorkerSafe{0, 812});
  EXPECT_THAT(scene.sent<rendezvous::WorkersSafe>(), IsEmpty());
  scene.ends(1, ExitCause::exited(0));
  ASSERT_EQ(scene.sent<rendezvous::WorkersSafe>().size(), 1u);
  EXPECT_EQ(scene.sent<rendezvous::WorkersSafe>()[0].step, 812);
}

TEST(SupervisorWords, WorkersThatSavedAndLeftForADrainHaveNotFinishedTheJob) {
  Scene scene(1);
  scene.runs();
  scene.happens(WorkerListens{0});
  scene.daemon(rendezvous::Drain{1, 30s, "node n2 joined"});
  scene.happens(WorkerSafe{0, 812});
  scene.ends_with_output(0, ExitCause::exited(0));
  scene.swept();
  EXPECT_THAT(scene.sent<rendezvous::WorkersSucceeded>(), IsEmpty());
  scene.daemon(rendezvous::StopWorkers{1, "node n2 joined"});
  EXPECT_EQ(scene.sent<rendezvous::WorkersStopped>().size(), 1u);
}

TEST(SupervisorWords, D12_ARankThatSavedBeforeItsNodeHeardOfTheDrainHasNotFinishedTheJob) {
  Scene scene(1);
  scene.runs();
  scene.happens(WorkerListens{0});
  scene.happens(WorkerSafe{0, 812});
  scene.ends_with_output(0, ExitCause::exited(0));
  scene.swept();
  EXPECT_THAT(scene.sent<rendezvous::WorkersSucceeded>(), IsEmpty());
  ASSERT_EQ(scene.sent<rendezvous::WorkersSafe>().size(), 1u);
  scene.daemon(rendezvous::Drain{1, 30s, "node n2 joined"});
  EXPECT_THAT(scene.sent<rendezvous::WorkersSafe>(), IsEmpty()) << "said once";
  scene.daemon(rendezvous::StopWorkers{1, "node n2 joined"});
  EXPECT_EQ(scene.sent<rendezvous::WorkersStopped>().size(), 1u);
}

TEST(SupervisorWords, AWorkerThatCanBeAskedNoLongerHoldsUpNoDrain) {
  Scene scene(2);
  scene.runs();
  scene.happens(WorkerListens{0});
  scene.daemon(rendezvous::Drain{1, 30s, "node n2 joined"});
  EXPECT_THAT(scene.sent<rendezvous::WorkersSafe>(), IsEmpty());
  scene.happens(WorkerDeaf{0});
  EXPECT_EQ(scene.sent<rendezvous::WorkersSafe>().size(), 1u);
}

TEST(SupervisorWords, AWorkerThatSaysHelloDuringADrainIsAskedAtOnce) {
  Scene scene(2);
  scene.runs();
  scene.happens(WorkerListens{0});
  scene.daemon(rendezvous::Drain{1, 30s, "node n2 joined"});
  scene.happens(WorkerListens{1});
  ASSERT_EQ(scene.wanted<AskToSave>().size(), 1u);
  EXPECT_EQ(scene.wanted<AskToSave>()[0].local_rank, 1);
  scene.happens(WorkerSafe{0, 5});
  EXPECT_THAT(scene.sent<rendezvous::WorkersSafe>(), IsEmpty());
  scene.happens(WorkerSafe{1, 5});
  EXPECT_EQ(scene.sent<rendezvous::WorkersSafe>().size(), 1u);
}

TEST(SupervisorWords, H3_WhereDoneIsExpectedAnExitWith0WithoutItIsAFailure) {
  Scene scene = scene_that_expects_done();
  scene.runs();
  scene.happens(WorkerDone{0});
  scene.ends_with_output(0, ExitCause::exited(0));
  EXPECT_EQ(scene.said(), "");
  scene.ends(1, ExitCause::exited(0));
  EXPECT_EQ(scene.said(), "rank 1 (local 1, pid 101) exited with code 0; it had not said that it was done\n");
  scene.output(1);
  ASSERT_EQ(scene.sent<rendezvous::WorkerFailed>().size(), 1u);
  const ExitCause told = scene.sent<rendezvous::WorkerFailed>()[0].failure.cause;
  EXPECT_EQ(told.value, 0);
  EXPECT_EQ(told.evidence, "it had not said that it was done");
}

TEST(SupervisorWords, H3_DoneIsOfOneRoundAndExcusesNoOtherCode) {
  Scene scene = scene_that_expects_done();
  scene.runs();
  scene.happens(WorkerDone{0});
  scene.happens(WorkerDone{1});
  scene.ends_with_output(1, ExitCause::exited(3));
  EXPECT_EQ(scene.supervisor->group().at(1).cause, ExitCause::exited(3));
  scene.ends_with_output(0, ExitCause::exited(0));
  scene.swept();
  scene.daemon(rendezvous::StopWorkers{1, "restart 1 of 3"});
  scene.runs(2);
  scene.ends(0, ExitCause::exited(0));
  EXPECT_TRUE(scene.supervisor->group().at(0).left_early) << "it was done in the round before";
}

TEST(SupervisorWords, H3_WhoSavedOrWasToldToStopMayLeave) {
  Scene drained = scene_that_expects_done();
  drained.runs();
  drained.happens(WorkerListens{0});
  drained.daemon(rendezvous::Drain{1, 30s, "n3 joined"});
  drained.happens(WorkerSafe{0, 812});
  drained.ends_with_output(0, ExitCause::exited(0));
  EXPECT_FALSE(drained.supervisor->group().at(0).left_early);

  Scene stopped = scene_that_expects_done();
  stopped.runs();
  stopped.happens(StopSignal{SIGTERM});
  stopped.ends_with_output(0, ExitCause::exited(0));
  stopped.ends_with_output(1, ExitCause::exited(0));
  stopped.swept();
  ASSERT_EQ(stopped.wanted<Finish>().size(), 1u);
  EXPECT_EQ(stopped.wanted<Finish>()[0].outcome.kind, rendezvous::OutcomeKind::preempted);
}

TEST(SupervisorWords, H3_WhereDoneIsNotExpectedAnExitWith0IsASuccess) {
  Scene scene(1);
  scene.runs();
  scene.ends_with_output(0, ExitCause::exited(0));
  scene.swept();
  EXPECT_EQ(scene.sent<rendezvous::WorkersSucceeded>().size(), 1u);
}

}  // namespace
}  // namespace muster::agent
