// What transcripts (tests/scenarios) cannot show: questions that are not messages, and large numbers.
#include "rendezvous/core/job.hpp"

#include <gtest/gtest.h>

#include <map>

namespace muster::rendezvous {
namespace {

using namespace std::chrono_literals;

constexpr Instant start = Instant(24h);

NodeOffer offer(const NodeId& node, const std::string& incarnation = "1") {
  NodeOffer offer;
  offer.node = node;
  offer.host = node;
  offer.address = "10.0.0.1";
  offer.incarnation = incarnation;
  return offer;
}

JobPolicy nodes(int min, int max) {
  JobPolicy policy;
  policy.min_nodes = min;
  policy.max_nodes = max;
  return policy;
}

TEST(Job, ASecondNodeOfTheSameNameIsRefusedNamingTheFirst) {
  Job job("job", nodes(2, 2));
  job.step(FromAgent{"n1", Join{offer("n1")}}, start);
  EXPECT_FALSE(job.refusal(offer("n1"), start)) << "the same agent on a new connection";
  EXPECT_FALSE(job.refusal(offer("n2"), start));
  const auto refused = job.refusal(offer("n1", "2"), start);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, RefusalCode::duplicate_node);
  EXPECT_EQ(refused->reason, "node n1 is already here (n1, 10.0.0.1): each node needs a name of its own");
  job.step(ConnectionLost{"n1", LossKind::closed, "closed"}, start);
  EXPECT_FALSE(job.refusal(offer("n1", "2"), start)) << "a relaunch";
}

TEST(Job, AnEndedJobRefusesStrangersAndTellsItsOwn) {
  Job job("job", nodes(1, 1));
  job.step(FromAgent{"n1", Join{offer("n1")}}, start);
  job.step(FromAgent{"n1", WorkersSucceeded{1}}, start);
  ASSERT_TRUE(job.over());
  EXPECT_EQ(job.refusal(offer("n2"), start)->code, RefusalCode::job_over);
  const auto again = job.step(FromAgent{"n1", Join{offer("n1")}}, start);
  EXPECT_TRUE(std::holds_alternative<JobEnded>(std::get<ToAgent>(again.at(0)).message));
  EXPECT_FALSE(job.wake_at());
}

TEST(Job, A14_TheNextJobOfTheSameNameKeepsThePlaces) {
  Job first("job", nodes(2, 2));
  first.step(FromAgent{"b", Join{offer("b")}}, start);
  first.step(FromAgent{"a", Join{offer("a")}}, start);
  first.step(FromAgent{"a", WorkersSucceeded{1}}, start);
  first.step(FromAgent{"b", WorkersSucceeded{1}}, start);
  ASSERT_TRUE(first.over());
  Job second("job", nodes(2, 2), first.places());
  second.step(FromAgent{"a", Join{offer("a", "2")}}, start);
  second.step(FromAgent{"b", Join{offer("b", "2")}}, start);
  ASSERT_TRUE(second.round());
  EXPECT_EQ(second.round()->group_rank("b"), 0);
  EXPECT_EQ(second.round()->group_rank("a"), 1);
}

TEST(Job, M1_ATenThousandNodeRoundTakesAFewMessagesANode) {
  constexpr int count = 10'000;
  Job job("job", nodes(count, count));
  std::map<NodeId, int> messages;
  Instant now = start;
  for (int i = 0; i < count; ++i) {
    const NodeId node = "n" + std::to_string(i);
    now += 300us;  // three seconds in all
    for (const Effect& effect : job.step(FromAgent{node, Join{offer(node)}}, now))
      ++messages[std::get<ToAgent>(effect).node];
  }
  ASSERT_EQ(job.phase(), Phase::running);
  EXPECT_EQ(job.round()->size(), count);
  for (const auto& [node, number] : messages) EXPECT_LE(number, 5) << node;
}

TEST(Job, TheNumberOfSparesHasALimit) {
  Job job("job", nodes(1, 1));
  for (int i = 0; i < 1 + max_spares; ++i) {
    const NodeId node = "n" + std::to_string(i);
    job.step(FromAgent{node, Join{offer(node)}}, start);
  }
  EXPECT_EQ(job.refusal(offer("late"), start)->code, RefusalCode::limit_reached);
  const auto effects = job.step(FromAgent{"late", Join{offer("late")}}, start);
  EXPECT_EQ(std::get<Refused>(std::get<ToAgent>(effects.at(0)).message).code, RefusalCode::limit_reached);
}

TEST(Job, MalformedMessagesAreRefusedNotBelieved) {
  Job job("job", nodes(1, 1));
  NodeOffer empty = offer("n1");
  empty.local_workers = 0;
  const auto code_of = [&](AgentMessage message) {
    const auto effects = job.step(FromAgent{"n1", std::move(message)}, start);
    return std::get<Refused>(std::get<ToAgent>(effects.at(0)).message).code;
  };
  EXPECT_EQ(code_of(Join{empty}), RefusalCode::malformed);
  EXPECT_EQ(code_of(Join{offer("other")}), RefusalCode::malformed);
  Resume resume;
  resume.offer = offer("n1");
  resume.round = 1;
  resume.group_rank = 1;
  EXPECT_EQ(code_of(resume), RefusalCode::malformed);
}

TEST(Job, AClockThatGoesBackwardsChangesNothing) {
  Job job("job", nodes(2, 2));
  job.step(FromAgent{"n1", Join{offer("n1")}}, start);
  job.step(Tick{}, start - 1h);
  EXPECT_EQ(job.wake_at(), start + 600s);
}

TEST(Job, MessagesOfStrangersAndOfOldRoundsAreIgnored) {
  Job job("job", nodes(1, 1));
  EXPECT_TRUE(job.step(FromAgent{"x", WorkersStopped{1}}, start).empty());
  job.step(FromAgent{"n1", Join{offer("n1")}}, start);
  for (const AgentMessage& message : {AgentMessage(WorkerFailed{7, {}}), AgentMessage(WorkersSafe{0, 1}),
                                      AgentMessage(WorkersStopped{2}), AgentMessage(WorkersSucceeded{0})})
    EXPECT_TRUE(job.step(FromAgent{"n1", message}, start).empty());
  EXPECT_TRUE(job.step(FromAgent{"x", WorkerFailed{1, {}}}, start).empty());
  EXPECT_EQ(job.phase(), Phase::running);
}

}  // namespace
}  // namespace muster::rendezvous
