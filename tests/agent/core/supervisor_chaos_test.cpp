// Faults that an operator rehearses.
#include "agent/core/supervisor.hpp"
#include "tests/agent/core/scene.hpp"

namespace muster::agent {
namespace {

using rendezvous::Inject;

std::vector<std::pair<int, int>> faults(const Scene& scene) {
  std::vector<std::pair<int, int>> found;
  for (const InjectFault& fault : scene.wanted<InjectFault>())
    found.emplace_back(fault.local_rank.value_or(-1), fault.signal_number);
  return found;
}

TEST(SupervisorChaos, ASignalForARankIsSaidFirstAndIsForItsWorkerAlone) {
  Scene scene;
  scene.happens(Begin{});
  scene.assigned(1, 1);  // ranks 2 and 3
  for (int local_rank = 0; local_rank < 2; ++local_rank)
    scene.happens(WorkerStarted{local_rank, 100 + local_rank, scene.now});
  scene.daemon(Inject{3, SIGKILL});
  EXPECT_EQ(scene.said(), "musterctl chaos: SIGKILL to rank 3 (pid 101)\n");
  EXPECT_TRUE(std::holds_alternative<Say>(scene.effects.at(0)));
  EXPECT_EQ(faults(scene), (Pairs{{1, SIGKILL}}));
  EXPECT_TRUE(scene.wanted<SignalWorker>().empty());
}

TEST(SupervisorChaos, WhatComesOfItIsAFailureAsAnyOther) {
  Scene scene;
  scene.runs();
  scene.daemon(Inject{1, SIGTERM});
  EXPECT_FALSE(scene.supervisor->wake_at());
  scene.ends_with_output(1, ExitCause::signalled(SIGTERM));
  ASSERT_EQ(scene.sent<rendezvous::WorkerFailed>().size(), 1u);
  EXPECT_EQ(scene.sent<rendezvous::WorkerFailed>()[0].failure.cause.sentence(),
            "was killed by SIGTERM, not sent by muster; an operator sent it on purpose (musterctl chaos)");
}

TEST(SupervisorChaos, AnotherSignalThatKillsTheWorkerIsNotTheRehearsedOne) {
  Scene scene;
  scene.runs();
  scene.daemon(Inject{1, SIGSTOP});
  scene.ends_with_output(1, ExitCause::signalled(SIGSEGV));
  ASSERT_EQ(scene.sent<rendezvous::WorkerFailed>().size(), 1u);
  EXPECT_EQ(scene.sent<rendezvous::WorkerFailed>()[0].failure.cause.sentence(),
            "was killed by SIGSEGV, not sent by muster");
}

TEST(SupervisorChaos, ALauncherThatIsToldToLeaveSaysThatItWasRehearsed) {
  Scene scene;
  scene.runs();
  scene.daemon(Inject{std::nullopt, SIGTERM});
  scene.happens(StopSignal{SIGTERM});
  ASSERT_EQ(scene.sent<rendezvous::Leave>().size(), 1u);
  EXPECT_EQ(scene.sent<rendezvous::Leave>()[0].reason, "SIGTERM, rehearsed by musterctl chaos");
  scene.ends_with_output(0, ExitCause::signalled(SIGTERM));
  scene.ends_with_output(1, ExitCause::signalled(SIGTERM));
  scene.swept();
  ASSERT_EQ(scene.wanted<Finish>().size(), 1u);
  EXPECT_EQ(scene.wanted<Finish>()[0].outcome.reason, "stopped by SIGTERM, rehearsed by musterctl chaos");
}

TEST(SupervisorChaos, AnotherSignalToTheLauncherIsNotTheRehearsedOne) {
  Scene scene;
  scene.runs();
  scene.daemon(Inject{std::nullopt, SIGTERM});
  scene.happens(StopSignal{SIGINT});
  ASSERT_EQ(scene.sent<rendezvous::Leave>().size(), 1u);
  EXPECT_EQ(scene.sent<rendezvous::Leave>()[0].reason, "SIGINT came from outside");
}

TEST(SupervisorChaos, ARankWithoutAProcessIsSaidAndNothingHappens) {
  Scene scene;
  scene.happens(Begin{});
  const auto in_vain = [&](int rank) {
    scene.daemon(Inject{rank, SIGKILL});
    EXPECT_EQ(scene.said(), "musterctl chaos: SIGKILL to rank " + std::to_string(rank) +
                                ": it has no process here any more, so nothing happens\n");
    EXPECT_THAT(faults(scene), IsEmpty());
  };
  in_vain(0);
  scene.assigned(1);
  in_vain(0);  // not started yet
  for (int local_rank = 0; local_rank < 2; ++local_rank)
    scene.happens(WorkerStarted{local_rank, 100 + local_rank, scene.now});
  in_vain(2);
  scene.ends_with_output(0, ExitCause::exited(0));
  in_vain(0);
  scene.daemon(rendezvous::StopWorkers{1, "node n2 joined"});
  scene.daemon(Inject{1, SIGKILL});
  EXPECT_EQ(faults(scene), (Pairs{{1, SIGKILL}})) << "also while it is to leave";
  scene.happens(MainEnded{1});
  in_vain(1);
}

TEST(SupervisorChaos, OneForTheLauncherIsSaidFirstToo) {
  Scene scene;
  scene.happens(Begin{});
  scene.daemon(Inject{std::nullopt, SIGTERM});
  EXPECT_EQ(scene.said(), "musterctl chaos: SIGTERM to this launcher\n");
  ASSERT_EQ(scene.effects.size(), 2u);
  EXPECT_EQ(faults(scene), (Pairs{{-1, SIGTERM}}));
}

}  // namespace
}  // namespace muster::agent
