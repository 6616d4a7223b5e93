// What transcripts (tests/scenarios) cannot show: questions that are not messages, and large numbers.
#include "rendezvous/core/job.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <utility>

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

TEST(Job, D15_D16_OnlyWhoFailedFiveTimesInAMinuteIsSentAway) {
  Job job("job", nodes(1, 2));
  job.step(FromAgent{"n2", Join{offer("n2")}}, start);
  for (const auto& [apart, sent_away] : {std::pair{Duration(10s), true}, {Duration(20s), false}}) {
    JobSnapshot snapshot = job.snapshot(start);
    for (int i = 4; i >= 0; --i) snapshot.strikes["n1"].push_back(start - i * apart);
    const auto refused = Job::restore(snapshot, start).refusal(offer("n1"), start);
    EXPECT_EQ(refused.has_value(), sent_away);
    if (!refused) continue;
    EXPECT_EQ(refused->code, RefusalCode::cooling_down);
    EXPECT_EQ(refused->reason, "n1 failed 5 times in the last minute: it may come in again in 1 min 20 s");
  }
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

// "training can begin when starts are longer than the time between joins", whatever the budget of changes
TEST(Job, D12_RoundsBeginThoughNodesComeMoreOftenThanAStartTakes) {
  constexpr Duration start_takes = 30s;
  JobPolicy policy = nodes(1, 100);
  policy.last_call = 0s;
  policy.membership_changes.count = unlimited;
  Job job("job", policy);
  int wasted = 0;
  int begun = 0;
  Instant round_since = start;
  Instant now = start;
  const auto step = [&](const Event& event) {
    for (const Effect& effect : job.step(event, now)) {
      const auto* to_agent = std::get_if<ToAgent>(&effect);
      if (to_agent && std::holds_alternative<Assignment>(to_agent->message)) round_since = now;
    }
  };
  for (int second = 0; second < 600; ++second, now = start + second * 1s) {
    if (second % 10 == 0)
      step(FromAgent{"n" + std::to_string(second), Join{offer("n" + std::to_string(second))}});
    step(Tick{});
    if (job.phase() == Phase::running && now - round_since == start_takes) {
      ++begun;
      step(FromAgent{job.round()->state().seats.front().node, Progress{job.round()->number(), 1}});
    }
    if (job.phase() != Phase::draining) continue;
    wasted += !job.round()->any_step();
    const auto seats = job.round()->state().seats;
    for (const Seat& seat : seats) step(FromAgent{seat.node, WorkersSafe{job.round()->number(), 1}});
    for (const Seat& seat : seats) step(FromAgent{seat.node, WorkersStopped{job.round()->number()}});
    for (const Seat& seat : seats) step(FromAgent{seat.node, Join{offer(seat.node)}});
  }
  EXPECT_LE(wasted, 1);
  EXPECT_GE(begun, 10) << "the damping of many changes holds newcomers back, too";
}

TEST(Job, AJournalKeepsTheFirstStepOfARoundAndNoOther) {
  Job job("job", nodes(1, 2));
  const Event first = FromAgent{"n1", Progress{1, 5}};
  EXPECT_FALSE(job.matters(first)) << "there is no round";
  job.step(FromAgent{"n1", Join{offer("n1")}}, start);
  job.step(Tick{}, start + 1h);
  ASSERT_EQ(job.phase(), Phase::running);
  EXPECT_TRUE(job.matters(first));
  EXPECT_FALSE(job.matters(FromAgent{"n1", Progress{1, -1}}));
  EXPECT_FALSE(job.matters(FromAgent{"n1", Heartbeat{}}));
  job.step(first, start + 1h);
  EXPECT_FALSE(job.matters(FromAgent{"n1", Progress{1, 6}}));
  EXPECT_TRUE(job.matters(Tick{}));
}

// "Given 50 of 100 simulated agents vanish and return in 5 s, when settled, then at most 2 rounds happen."
TEST(Job, M7_FiftyOfAHundredThatVanishAndReturnWithinFiveSecondsMakeTwoRoundsAtMost) {
  Job job("job", nodes(1, 100));
  Instant now = start;
  const auto name = [](int i) { return "n" + std::to_string(i); };
  std::map<NodeId, std::string> alive;  // its incarnation
  std::deque<std::pair<NodeId, AgentMessage>> answers;
  const auto step = [&](const Event& event) {
    for (const Effect& effect : job.step(event, now)) {
      const auto* to = std::get_if<ToAgent>(&effect);
      if (!to || !alive.count(to->node)) continue;
      if (const auto* drain = std::get_if<Drain>(&to->message))
        answers.emplace_back(to->node, WorkersSafe{drain->round, 1});
      if (const auto* stop = std::get_if<StopWorkers>(&to->message)) {
        answers.emplace_back(to->node, WorkersStopped{stop->round});
        answers.emplace_back(to->node, Join{offer(to->node, alive[to->node])});
      }
    }
  };
  for (int i = 0; i < 100; ++i) {
    alive[name(i)] = "1";
    step(FromAgent{name(i), Join{offer(name(i), "1")}});
  }
  ASSERT_EQ(job.round()->size(), 100);
  now += 1h;
  const Instant began = now;
  for (int tick = 0; tick < 2000; ++tick, now = began + tick * 10ms) {
    const int i = tick / 2;  // one goes every 20 ms in the first second, and is back four seconds later
    if (tick % 2 == 0 && i < 50) {
      alive.erase(name(2 * i));
      step(ConnectionLost{name(2 * i), LossKind::closed, "connection closed"});
    }
    if (tick % 2 == 0 && i >= 200 && i < 250) {
      alive[name(2 * (i - 200))] = "2";
      step(FromAgent{name(2 * (i - 200)), Join{offer(name(2 * (i - 200)), "2")}});
    }
    for (auto said = std::exchange(answers, {}); const auto& [node, message] : said)
      if (alive.count(node)) step(FromAgent{node, message});
    step(Tick{});
  }
  ASSERT_TRUE(job.round());
  EXPECT_EQ(job.round()->size(), 100);
  EXPECT_LE(job.round()->number(), 1 + 2);
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
