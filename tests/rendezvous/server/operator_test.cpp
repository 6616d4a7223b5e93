// What an operator asks, over the channel.
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "rendezvous/client/operator_call.hpp"
#include "tests/rendezvous/support/daemon_fixture.hpp"

namespace muster::rendezvous {
namespace {

class OperatorTest : public DaemonTest {
 protected:
  /// ask_daemon() blocks, and the daemon needs this thread.
  Result<OperatorReply> ask(const OperatorRequest& request, const Token* token = nullptr) {
    std::optional<Result<OperatorReply>> reply;
    std::atomic<bool> done = false;
    std::thread asker([&] {
      reply = ask_daemon(endpoint_, token, nullptr, request, std::chrono::seconds(10));
      done = true;
    });
    EXPECT_TRUE(run_until([&] { return done.load(); }));
    asker.join();
    return *reply;
  }
  static nlohmann::json json(const Result<OperatorReply>& reply) {
    EXPECT_TRUE(reply) << reply.error().sentence();
    return nlohmann::json::parse(reply->json);
  }
};

TEST_F(OperatorTest, StatusAndEventsOfAllJobsOrOne) {
  start_daemon();
  auto& a = agent("a");
  ASSERT_TRUE(run_until([&] { return a.last<Waiting>() != nullptr; }));
  EXPECT_EQ(json(ask({OperatorVerb::status, "", "", 0, 0}))["jobs"][0]["job"], "mnist");
  EXPECT_EQ(json(ask({OperatorVerb::events, "mnist", "", 0, 0}))["jobs"][0]["events"].size(), 1u);
  const auto none = ask({OperatorVerb::status, "other", "", 0, 0});
  EXPECT_FALSE(none->ok);
  EXPECT_NE(none->json.find("no job 'other'"), std::string::npos);
}

TEST_F(OperatorTest, A10_NoMoreComingStartsTheRoundAtOnce) {
  policy_.min_nodes = 1;
  policy_.max_nodes = 4;
  policy_.last_call = std::chrono::hours(1);
  start_daemon();
  auto& a = agent("a");
  ASSERT_TRUE(run_until([&] { return a.last<Waiting>() != nullptr; }));
  EXPECT_EQ(a.last<Assignment>(), nullptr);
  const auto reply = ask({OperatorVerb::close_roster, "", "", 0, 0});
  EXPECT_TRUE(reply->ok) << reply->json;
  EXPECT_TRUE(run_until([&] { return a.last<Assignment>() != nullptr; }, std::chrono::seconds(2)));
}

TEST_F(OperatorTest, StopEndsTheJobOnItsNodes) {
  policy_.min_nodes = policy_.max_nodes = 2;
  start_daemon();
  auto& a = agent("a");
  ASSERT_TRUE(run_until([&] { return a.last<Waiting>() != nullptr; }));
  EXPECT_TRUE(ask({OperatorVerb::stop_job, "mnist", "", 0, 0})->ok);
  EXPECT_NE(log().find("by an operator: job mnist stops"), std::string::npos) << log();
  ASSERT_TRUE(run_until([&] { return a.last<JobEnded>() != nullptr; }));
  EXPECT_EQ(a.last<JobEnded>()->outcome.kind, OutcomeKind::stopped);
  const auto again = ask({OperatorVerb::stop_job, "mnist", "", 0, 0});
  EXPECT_FALSE(again->ok);
  EXPECT_NE(again->json.find("is over"), std::string::npos);
}

TEST_F(OperatorTest, ARehearsedFaultReachesItsAgentAndIsAnEvent) {
  policy_.min_nodes = policy_.max_nodes = 1;
  policy_.allow_chaos = true;
  start_daemon();
  auto& a = agent("a");
  ASSERT_TRUE(run_until([&] { return a.last<Assignment>() != nullptr; }));
  const auto reply = ask({OperatorVerb::rehearse, "", "", 0, 0, 0, SIGKILL});
  EXPECT_EQ(json(reply)["done"], "SIGKILL goes to rank 0 on a");
  ASSERT_TRUE(run_until([&] { return a.last<Inject>() != nullptr; }));
  EXPECT_EQ(*a.last<Inject>(), (Inject{0, SIGKILL}));
  EXPECT_TRUE(ask({OperatorVerb::rehearse, "mnist", "a", 0, 0, -1, SIGTERM})->ok);
  ASSERT_TRUE(run_until([&] { return a.count<Inject>() == 2; }));
  EXPECT_EQ(*a.last<Inject>(), (Inject{std::nullopt, SIGTERM}));
  const auto events = json(ask({OperatorVerb::events, "mnist", "", 0, 0}))["jobs"][0]["events"];
  EXPECT_EQ(events.at(events.size() - 2)["text"],
            "an operator sent SIGKILL to rank 0 on a (musterctl chaos)");
  EXPECT_EQ(events.back()["text"], "an operator sent SIGTERM to the launcher of a (musterctl chaos)");
}

/// What the others are told of a launcher that ends.
class LossTest : public OperatorTest {
 protected:
  void begin(Duration closed_grace = std::chrono::milliseconds(100)) {
    policy_.min_nodes = 1;
    policy_.max_nodes = 2;
    policy_.last_call = std::chrono::milliseconds(100);
    policy_.closed_grace = closed_grace;
    policy_.allow_chaos = true;
    start_daemon();
    for (const char* node : {"a", "b"}) agent(node);
    ASSERT_TRUE(run_until([&] { return at(0).last<Assignment>() != nullptr && at(1).last<Assignment>(); }));
  }
  TestAgent& at(std::size_t place) { return *agents_.at(place); }
  void rehearse() {
    ASSERT_TRUE(ask({OperatorVerb::rehearse, "mnist", "b", 0, 0, -1, SIGKILL})->ok);
    ASSERT_TRUE(run_until([&] { return at(1).last<Inject>() != nullptr; }));
  }
  std::string why_the_round_ends() {
    EXPECT_TRUE(run_until([&] { return at(0).last<StopWorkers>() != nullptr; }));
    return at(0).last<StopWorkers>()->reason;
  }
};

TEST_F(LossTest, ThatWasRehearsedIsToldSo) {
  begin();
  rehearse();
  at(1).link.reset();
  EXPECT_EQ(
      why_the_round_ends(),
      "b was lost (the peer closed the connection; SIGKILL to its launcher, rehearsed by musterctl chaos)");
  const auto jobs = json(ask({OperatorVerb::events, "mnist", "", 0, 0}))["jobs"];
  EXPECT_NE(jobs[0]["events"].dump().find("ended: the peer closed the connection; SIGKILL to its launcher, "
                                          "rehearsed by musterctl chaos"),
            std::string::npos)
      << jobs;
}

TEST_F(LossTest, OfALauncherThatWasStartedAnewIsToldSoToo) {
  begin(std::chrono::minutes(1));
  rehearse();
  at(1).link.reset();
  auto options = link_options("b");
  options.incarnation = "b-2";
  agent(options);
  EXPECT_EQ(why_the_round_ends(),
            "b was lost (its agent was started anew; SIGKILL to its launcher, rehearsed by musterctl chaos)");
}

TEST_F(LossTest, ThatNobodyRehearsedIsToldWithoutThatWord) {
  begin();
  at(1).link.reset();
  EXPECT_EQ(why_the_round_ends(), "b was lost (the peer closed the connection)");
}

TEST_F(OperatorTest, AJobThatDoesNotAllowRehearsalsIsNotHurt) {
  policy_.min_nodes = policy_.max_nodes = 1;
  start_daemon();
  auto& a = agent("a");
  ASSERT_TRUE(run_until([&] { return a.last<Assignment>() != nullptr; }));
  const auto reply = ask({OperatorVerb::rehearse, "", "", 0, 0, 0, SIGKILL});
  EXPECT_FALSE(reply->ok);
  EXPECT_NE(reply->json.find("job mnist was not started for rehearsals"), std::string::npos) << reply->json;
  EXPECT_EQ(log().find("musterctl chaos"), std::string::npos) << log();
}

TEST_F(OperatorTest, WithoutAJobThereIsNothingToChange) {
  start_daemon();
  const auto reply = ask({OperatorVerb::close_roster, "", "", 0, 0});
  EXPECT_FALSE(reply->ok);
  EXPECT_NE(reply->json.find("0 jobs"), std::string::npos);
}

TEST_F(OperatorTest, N1_WithoutTheTokenThereIsNoAnswer) {
  auto settings = options();
  const Token token("0123456789abcdef");
  settings.token = token;
  start_daemon(settings);
  const auto reply = ask({OperatorVerb::status, "", "", 0, 0});
  ASSERT_FALSE(reply);
  EXPECT_NE(reply.error().sentence().find("wants a token"), std::string::npos) << reply.error().sentence();
  EXPECT_TRUE(ask({OperatorVerb::status, "", "", 0, 0}, &token));
}

TEST_F(OperatorTest, NobodyThereIsNamed) {
  start_daemon();
  stop_daemon();
  const auto reply = ask({OperatorVerb::status, "", "", 0, 0});
  ASSERT_FALSE(reply);
  EXPECT_NE(reply.error().sentence().find("ECONNREFUSED"), std::string::npos) << reply.error().sentence();
}

}  // namespace
}  // namespace muster::rendezvous
