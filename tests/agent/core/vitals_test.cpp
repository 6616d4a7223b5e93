// What whoever asks for the node's health is told.
#include "agent/core/vitals.hpp"

#include "tests/agent/core/scene.hpp"

namespace muster::agent {
namespace {

SupervisorOptions with_limit(Duration limit) {
  SupervisorOptions options;
  options.progress_limit = limit;
  return options;
}

TEST(Vitals, L2_ARankThatTellsOfNoStepForTooLongIsStuck) {
  Scene scene(2, with_limit(10s));
  scene.runs();
  scene.happens(WorkerProgress{0, 5});
  scene.happens(WorkerProgress{1, 5});
  scene.now += 8s;
  scene.happens(WorkerProgress{0, 6});
  scene.now += 3s;
  const Vitals vitals = scene.supervisor->vitals(scene.now);
  EXPECT_EQ(vitals.state, AgentState::running);
  EXPECT_FALSE(vitals.healthy());
  EXPECT_FALSE(vitals.workers[0].stuck);
  EXPECT_TRUE(vitals.workers[1].stuck);
  EXPECT_EQ(vitals.workers[1].step, 5);
  EXPECT_EQ(vitals.workers[1].since_progress, 11s);
}

TEST(Vitals, WhoNeverToldOfAStepIsNotMeasuredByThem) {
  Scene scene(1, with_limit(10s));
  scene.runs();
  scene.now += 1h;
  EXPECT_TRUE(scene.supervisor->vitals(scene.now).healthy());
  EXPECT_FALSE(scene.supervisor->vitals(scene.now).workers[0].since_progress);
}

TEST(Vitals, WithoutALimitNobodyIsStuck) {
  Scene scene(1);
  scene.runs();
  scene.happens(WorkerProgress{0, 5});
  scene.now += 1000h;
  EXPECT_TRUE(scene.supervisor->vitals(scene.now).healthy());
}

TEST(Vitals, L3_WhoWaitsForOthersIsHealthyHoweverLong) {
  Scene scene(1, with_limit(10s));
  scene.happens(Begin{});
  scene.now += 1h;
  EXPECT_EQ(scene.supervisor->vitals(scene.now).state, AgentState::waiting);
  EXPECT_TRUE(scene.supervisor->vitals(scene.now).healthy());

  scene.runs();
  scene.happens(WorkerProgress{0, 5});
  scene.ends_with_output(0, ExitCause::exited(0));
  scene.swept();
  scene.now += 120s;
  const Vitals finished = scene.supervisor->vitals(scene.now);
  EXPECT_EQ(finished.state, AgentState::draining);
  EXPECT_TRUE(finished.healthy());
  EXPECT_THAT(finished.why, HasSubstr("succeeded here, waiting for the other nodes"));
}

TEST(Vitals, L3_WhileARoundEndsSilenceIsNoFault) {
  Scene scene(1, with_limit(10s));
  scene.runs();
  scene.happens(WorkerListens{0});
  scene.happens(WorkerProgress{0, 5});
  scene.daemon(rendezvous::Drain{1, 60s, "n3 joined"});
  scene.now += 20s;
  EXPECT_EQ(scene.supervisor->vitals(scene.now).state, AgentState::draining);
  EXPECT_TRUE(scene.supervisor->vitals(scene.now).healthy());
  scene.daemon(rendezvous::StopWorkers{1, "n3 joined"});
  EXPECT_EQ(scene.supervisor->vitals(scene.now).state, AgentState::stopping);
  EXPECT_TRUE(scene.supervisor->vitals(scene.now).healthy());
}

TEST(Vitals, TheEndIsAStateToo) {
  Scene scene(1);
  scene.happens(Begin{});
  scene.happens(StopSignal{15});
  EXPECT_EQ(scene.supervisor->vitals(scene.now).state, AgentState::ended);
}

}  // namespace
}  // namespace muster::agent
