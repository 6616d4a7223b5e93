#include "rendezvous/client/link_memory.hpp"

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

NodeOffer offer() {
  NodeOffer offer;
  offer.node = "n1";
  return offer;
}

Assignment round_of(int round) {
  Assignment assignment;
  assignment.round = round;
  assignment.group_rank = 1;
  assignment.group_world_size = 3;
  assignment.first_rank = 2;
  assignment.restart_count = 1;
  return assignment;
}

Resume resume_of(int round, bool workers_alive) { return {offer(), round, 1, 3, 2, 1, workers_alive}; }

using Messages = std::vector<AgentMessage>;
using namespace std::chrono_literals;

const Instant at{100s};

TEST(LinkMemory, SaysNothingBeforeTheAgentDoes) { EXPECT_EQ(LinkMemory().restatement(at), Messages{}); }

TEST(LinkMemory, ANodeThatWaitsJoinsAgain) {
  LinkMemory memory;
  memory.note_sent(Join{offer()}, at);
  memory.note_received(Waiting{"for others"});
  EXPECT_EQ(memory.restatement(at), Messages{Join{offer()}});
  EXPECT_FALSE(memory.has_round());
}

TEST(LinkMemory, ANodeWithARoundResumesIt) {
  LinkMemory memory;
  memory.note_sent(Join{offer()}, at);
  memory.note_received(round_of(4));
  EXPECT_TRUE(memory.has_round());
  EXPECT_EQ(memory.restatement(at), Messages{(resume_of(4, true))});
}

TEST(LinkMemory, RepeatsWhatItSaidOfThisRound) {
  LinkMemory memory;
  memory.note_sent(Join{offer()}, at);
  memory.note_received(round_of(4));
  WorkerFailed failed{4, {}};
  failed.failure.rank = 2;
  memory.note_sent(failed, at);
  auto second = failed;
  second.failure.rank = 3;
  memory.note_sent(second, at);
  memory.note_sent(WorkersSafe{4, 12}, at);
  memory.note_sent(WorkersStopped{4}, at);
  memory.note_sent(Leave{"SIGTERM"}, at);
  EXPECT_EQ(memory.restatement(at),
            (Messages{resume_of(4, false), failed, Leave{"SIGTERM"}, WorkersSafe{4, 12}, WorkersStopped{4}}));
}

TEST(LinkMemory, ForgetsTheRoundBefore) {
  LinkMemory memory;
  memory.note_sent(Join{offer()}, at);
  memory.note_received(round_of(4));
  memory.note_sent(WorkersStopped{4}, at);
  memory.note_sent(Join{offer()}, at);
  EXPECT_EQ(memory.restatement(at), Messages{Join{offer()}});
  memory.note_received(round_of(5));
  EXPECT_EQ(memory.restatement(at), Messages{(resume_of(5, true))});
}

TEST(LinkMemory, TheSameAssignmentAgainChangesNothing) {
  LinkMemory memory;
  memory.note_sent(Join{offer()}, at);
  memory.note_received(round_of(4));
  memory.note_sent(WorkersSucceeded{4}, at);
  memory.note_received(round_of(4));
  EXPECT_EQ(memory.restatement(at), (Messages{resume_of(4, false), WorkersSucceeded{4}}));
}

TEST(LinkMemory, AskedWhereItSatItSaysItsPlaceAndItsFailureAndJoinsAgain) {
  LinkMemory memory;
  memory.note_sent(Join{offer()}, at);
  memory.note_received(round_of(4));
  const WorkerFailed failed{4, {}};
  memory.note_sent(failed, at);
  memory.note_received(StopWorkers{4, "restart 1 of 3"});
  memory.note_sent(WorkersStopped{4}, at);
  memory.note_sent(Join{offer(), 4, 1}, at);
  EXPECT_EQ(memory.answer_to(StopWorkers{4, ""}, at),
            (Messages{resume_of(4, false), failed, WorkersStopped{4}, Join{offer(), 4, 1}}));
  EXPECT_EQ(memory.answer_to(StopWorkers{5, ""}, at), (Messages{Join{offer(), 4, 1}}));
  EXPECT_EQ(memory.answer_to(StopWorkers{4, "restart 1 of 3"}, at), Messages{});
  EXPECT_EQ(memory.answer_to(Waiting{""}, at), Messages{});
}

TEST(LinkMemory, AskedForARoundThatItWasNotInItJoinsAgain) {
  LinkMemory memory;
  EXPECT_EQ(memory.answer_to(StopWorkers{4, ""}, at), Messages{});
  memory.note_sent(Join{offer()}, at);
  memory.note_sent(Leave{"SIGTERM"}, at);
  EXPECT_EQ(memory.answer_to(StopWorkers{4, ""}, at), (Messages{Join{offer()}, Leave{"SIGTERM"}}));
}

TEST(LinkMemory, AFailureIsOlderEachTimeThatItIsTold) {
  LinkMemory memory;
  memory.note_sent(Join{offer()}, at);
  memory.note_received(round_of(4));
  memory.note_sent(WorkerFailed{4, {}, 20ms}, at);
  EXPECT_EQ(std::get<WorkerFailed>(memory.restatement(at + 3s).at(1)).age, 3020ms);
  EXPECT_EQ(std::get<WorkerFailed>(memory.answer_to(StopWorkers{4, ""}, at + 5s).at(1)).age, 5020ms);
}

TEST(LinkMemory, AFailureThatCameOfTheRoundsEndIsNoCause) {
  LinkMemory memory;
  memory.note_sent(Join{offer()}, at);
  memory.note_received(round_of(4));
  memory.note_received(StopWorkers{3, "an older one"});
  EXPECT_EQ(memory.restatement(at), Messages{(resume_of(4, true))});
  memory.note_received(StopWorkers{4, "restart 1 of 3"});
  memory.note_sent(WorkerFailed{4, {}}, at);
  EXPECT_EQ(memory.restatement(at), Messages{(resume_of(4, false))});
}

TEST(LinkMemory, IsOverAfterTheEndOrARefusal) {
  LinkMemory ended;
  EXPECT_FALSE(ended.over());
  ended.note_received(JobEnded{});
  EXPECT_TRUE(ended.over());
  LinkMemory refused;
  refused.note_received(Refused{});
  EXPECT_TRUE(refused.over());
}

}  // namespace
}  // namespace muster::rendezvous
