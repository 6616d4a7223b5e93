#include "rendezvous/client/remote_link.hpp"

#include "tests/rendezvous/support/daemon_fixture.hpp"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class RemoteLinkTest : public DaemonTest {
 protected:
  TestAgent& alone_in_a_round(RemoteLinkOptions options) {
    policy_.min_nodes = 1;
    policy_.last_call = milliseconds(1);
    options.policy = policy_;
    start_daemon();
    options.endpoint = endpoint_;
    auto& a = agent(options);
    EXPECT_TRUE(run_until([&] { return a.last<Assignment>() != nullptr; }));
    return a;
  }
  void start_and_stop_to_learn_a_free_port() {
    start_daemon();
    stop_daemon();
  }
};

TEST_F(RemoteLinkTest, P1_AnAgentWaitsForADaemonThatComesLater) {
  start_and_stop_to_learn_a_free_port();
  auto& a = agent("a");
  run_for(milliseconds(300));
  EXPECT_TRUE(a.received.empty());
  start_daemon();
  EXPECT_TRUE(run_until([&] { return a.last<Waiting>() != nullptr; }));
}

TEST_F(RemoteLinkTest, A8_TheJoinDeadlineEndsItWithTheReason) {
  start_and_stop_to_learn_a_free_port();
  auto options = link_options("a");
  options.join_deadline = milliseconds(300);
  const auto start = std::chrono::steady_clock::now();
  auto& a = agent(options);
  ASSERT_TRUE(run_until([&] { return a.last<JobEnded>() != nullptr; }));
  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(300));
  const auto& outcome = a.last<JobEnded>()->outcome;
  EXPECT_EQ(outcome.kind, OutcomeKind::rendezvous_failed);
  EXPECT_NE(outcome.reason.find(endpoint_.text()), std::string::npos) << outcome.reason;
  EXPECT_NE(outcome.reason.find("within 0.3 s"), std::string::npos) << outcome.reason;
  EXPECT_NE(outcome.reason.find("ECONNREFUSED"), std::string::npos) << outcome.reason;
}

TEST_F(RemoteLinkTest, ABrokenConnectionComesBackAndTheAgentHearsNothingOfIt) {
  start_daemon();
  auto& a = agent("a");
  ASSERT_TRUE(run_until([&] { return a.last<Waiting>() != nullptr; }));
  stop_daemon();
  ASSERT_TRUE(run_until([&] { return !a.notices.empty(); }));
  EXPECT_NE(a.notices[0].find("lost the connection to the rendezvous at " + endpoint_.text()),
            std::string::npos);
  start_daemon();
  ASSERT_TRUE(run_until([&] { return a.notices.size() == 2; }));
  EXPECT_NE(a.notices[1].find("connected again"), std::string::npos);
  auto& b = agent("b");
  EXPECT_TRUE(run_until([&] { return a.last<Assignment>() && b.last<Assignment>(); }))
      << "a node that waited for a round has joined the new daemon by itself";
  EXPECT_EQ(a.link->statistics().connections, 2);
}

TEST_F(RemoteLinkTest, D8_TheBudgetForComingBackIsBounded) {
  start_daemon();
  auto options = link_options("a");
  options.resume_budget = milliseconds(300);
  auto& a = agent(options);
  ASSERT_TRUE(run_until([&] { return a.last<Waiting>() != nullptr; }));
  stop_daemon();
  ASSERT_TRUE(run_until([&] { return a.last<JobEnded>() != nullptr; }));
  EXPECT_EQ(a.last<JobEnded>()->outcome.kind, OutcomeKind::rendezvous_failed);
  EXPECT_NE(a.last<JobEnded>()->outcome.reason.find("again within 0.3 s"), std::string::npos);
}

TEST_F(RemoteLinkTest, ADaemonThatAcceptsAndSaysNothingIsNotWaitedForForEver) {
  boost::asio::ip::tcp::acceptor mute(io_, {boost::asio::ip::make_address("127.0.0.1"), 0});
  endpoint_ = Endpoint{"127.0.0.1", mute.local_endpoint().port()};
  auto options = link_options("a");
  options.handshake_timeout = milliseconds(50);
  options.join_deadline = milliseconds(400);
  auto& a = agent(options);
  ASSERT_TRUE(run_until([&] { return a.last<JobEnded>() != nullptr; }));
  EXPECT_NE(a.last<JobEnded>()->outcome.reason.find("no answer to the handshake"), std::string::npos)
      << a.last<JobEnded>()->outcome.reason;
}

TEST_F(RemoteLinkTest, C5_WhoTakesConnectionsAndSaysNothingIsToldBeforeTheHandshakesTimeIsOver) {
  boost::asio::ip::tcp::acceptor mute(io_, {boost::asio::ip::make_address("127.0.0.1"), 0});
  endpoint_ = Endpoint{"127.0.0.1", mute.local_endpoint().port()};
  auto options = link_options("a");
  options.handshake_notice = milliseconds(50);
  auto& a = agent(options);
  ASSERT_TRUE(run_until([&] { return !a.notices.empty(); }, seconds(5)));
  EXPECT_NE(a.notices[0].find("cannot reach the rendezvous at " + endpoint_.text() +
                              ": it takes connections and has not answered for 50 ms; trying for "),
            std::string::npos)
      << a.notices[0];
}

// Field report: a second node of the same name was told after 7 s, and that it could not reach the rendezvous.
TEST_F(RemoteLinkTest, ANameThatIsTakenIsSaidAtOnceAndIsFinalAfterAWhile) {
  start_daemon();
  auto& first = agent("a");
  ASSERT_TRUE(run_until([&] { return first.last<Waiting>() != nullptr; }));
  auto options = link_options("a");
  options.incarnation = "another";
  options.duplicate_patience = milliseconds(300);
  auto& second = agent(options);
  ASSERT_TRUE(run_until([&] { return !second.notices.empty(); }, seconds(2)));
  EXPECT_NE(second.notices[0].find("refused by the rendezvous at " + endpoint_.text() +
                                   ": a node 'a' is here already, connected from 127.0.0.1:"),
            std::string::npos)
      << second.notices[0];
  EXPECT_NE(second.notices[0].find("trying for 0.3 s more"), std::string::npos) << second.notices[0];
  ASSERT_TRUE(run_until([&] { return second.last<Refused>() != nullptr; }));
  EXPECT_EQ(second.last<Refused>()->code, RefusalCode::duplicate_node);
  EXPECT_EQ(second.notices.size(), 1u);
}

TEST_F(RemoteLinkTest, WhoseNameWasTakenDoesNotRunTheJobAnewWhenItHasEnded) {
  policy_.min_nodes = 1;
  policy_.last_call = milliseconds(1);
  start_daemon();
  auto& first = agent("a");
  ASSERT_TRUE(run_until([&] { return first.last<Assignment>() != nullptr; }));
  auto options = link_options("a");
  options.incarnation = "another";
  auto& second = agent(options);
  ASSERT_TRUE(run_until([&] { return !second.notices.empty(); }));
  first.link->send(WorkersSucceeded{1});
  ASSERT_TRUE(run_until([&] { return second.last<Refused>() != nullptr; }));
  EXPECT_EQ(second.last<Refused>()->code, RefusalCode::job_over);
  EXPECT_NE(second.last<Refused>()->reason.find("another agent of node 'a' was in it to its end"),
            std::string::npos)
      << second.last<Refused>()->reason;
  EXPECT_EQ(second.last<Assignment>(), nullptr);
  auto later = link_options("a");
  later.incarnation = "a later run";
  auto& third = agent(later);
  EXPECT_TRUE(run_until([&] { return third.last<Assignment>() != nullptr; })) << "the id may be used again";
}

// The dead connection's end sets its name free, whatever becomes of that run.
TEST_F(RemoteLinkTest, AfterADeadConnectionOfItsNameANodeBeginsTheNextRun) {
  policy_.min_nodes = 1;
  policy_.last_call = milliseconds(1);
  policy_.closed_grace = milliseconds(1);
  start_daemon();
  auto& first = agent("a");
  ASSERT_TRUE(run_until([&] { return first.last<Assignment>() != nullptr; }));
  auto options = link_options("a");
  options.incarnation = "another";
  auto& second = agent(options);
  ASSERT_TRUE(run_until([&] { return !second.notices.empty(); }));
  first.link.reset();
  EXPECT_TRUE(run_until([&] { return second.last<Assignment>() != nullptr; }));
}

TEST_F(RemoteLinkTest, ADaemonThatFallsSilentIsLeft) {
  auto quick = options();
  quick.heartbeat_interval = milliseconds(40);
  start_daemon(quick);
  auto& a = agent("a");
  ASSERT_TRUE(run_until([&] { return a.last<Waiting>() != nullptr; }));
  // The daemon's side is frozen while the link's own heartbeat goes on: both share one thread here, so a
  // second context plays the daemon.
  boost::asio::io_context frozen;
  Daemon second(frozen, [&] {
    auto o = options();
    o.listen.port = 0;
    o.heartbeat_interval = milliseconds(40);
    return o;
  }());
  auto there = link_options("b");
  there.endpoint = *second.listen();
  auto& b = agent(there);
  ASSERT_TRUE(run_until([&] {
    frozen.poll();
    return b.last<Waiting>() != nullptr;
  }));
  ASSERT_TRUE(run_until([&] { return !b.notices.empty(); }));
  EXPECT_NE(b.notices[0].find("nothing was heard from it for"), std::string::npos) << b.notices[0];
}

TEST_F(RemoteLinkTest, B7_EveryAddressOfANameIsTried) {
  endpoint_ = Endpoint{"localhost", 0};
  start_daemon();
  auto& a = agent("a");
  EXPECT_TRUE(run_until([&] { return a.last<Waiting>() != nullptr; }, seconds(5)));
}

TEST_F(RemoteLinkTest, ANameThatDoesNotExistIsNamedAtTheDeadline) {
  auto options = link_options("a");
  options.endpoint = Endpoint{"no-such-host.invalid", 29400};
  options.join_deadline = milliseconds(100);
  auto& a = agent(options);
  ASSERT_TRUE(run_until([&] { return a.last<JobEnded>() != nullptr; }));
  EXPECT_NE(a.last<JobEnded>()->outcome.reason.find("no-such-host.invalid"), std::string::npos);
  EXPECT_NE(a.last<JobEnded>()->outcome.reason.find("cannot be looked up"), std::string::npos);
}

TEST_F(RemoteLinkTest, CloseSendsWhatWasSaidAndDeliversNothingMore) {
  start_daemon();
  auto& a = agent("a");
  ASSERT_TRUE(run_until([&] { return a.last<Waiting>() != nullptr; }));
  const auto heard = a.received.size();
  a.link->send(Leave{"SIGTERM"});
  a.link->close();
  ASSERT_TRUE(run_until([&] { return log().find("node a leaves: SIGTERM") != std::string::npos; }));
  ASSERT_TRUE(run_until([&] { return daemon_->sessions() == 0; }));
  EXPECT_EQ(a.received.size(), heard);
}

TEST_F(RemoteLinkTest, LastWordsThatNobodyTakesAreNotWaitedForLong) {
  start_daemon();
  auto options = link_options("a");
  options.linger = milliseconds(200);
  auto& a = agent(options);
  ASSERT_TRUE(run_until([&] { return a.last<Waiting>() != nullptr; }));
  a.link->send(Leave{"SIGTERM"});
  stop_daemon();
  a.link->close();
  EXPECT_TRUE(run_until([&] { return a.link->last_words_out(); }, seconds(5)));
}

// Field report: the others stood still for a minute, since a node had left while its daemon was away.
TEST_F(RemoteLinkTest, D1_WhoLeavesWhileTheDaemonIsAwayTellsItWhenItIsBack) {
  auto& a = alone_in_a_round(link_options("a"));
  stop_daemon();
  ASSERT_TRUE(run_until([&] { return !a.notices.empty(); }));
  a.link->send(Leave{"SIGTERM"});
  a.link->close();
  run_for(milliseconds(100));
  EXPECT_FALSE(a.link->last_words_out());
  start_daemon();
  ASSERT_TRUE(run_until([&] { return log().find("node a leaves: SIGTERM") != std::string::npos; }));
  EXPECT_TRUE(run_until([&] { return a.link->last_words_out() && daemon_->sessions() == 0; }));
}

TEST_F(RemoteLinkTest, D1_ALeaveThatTheDaemonHadNoTimeToReadIsToldAgain) {
  auto& a = alone_in_a_round(link_options("a"));
  a.link->send(Leave{"SIGTERM"});
  a.link->close();
  stop_daemon();
  run_for(milliseconds(50));
  EXPECT_FALSE(a.link->last_words_out());
  start_daemon();
  ASSERT_TRUE(run_until([&] { return log().find("node a leaves: SIGTERM") != std::string::npos; }));
  EXPECT_TRUE(run_until([&] { return a.link->last_words_out(); }));
}

TEST_F(RemoteLinkTest, ALeaveThatIsReadIsNotWaitedFor) {
  auto options = link_options("a");
  options.farewell = options.standing_farewell = std::chrono::hours(1);
  auto& a = alone_in_a_round(options);
  a.link->send(Leave{"SIGTERM"});
  a.link->close();
  EXPECT_TRUE(run_until([&] { return a.link->last_words_out(); }));
  EXPECT_TRUE(a.notices.empty()) << a.notices[0];
}

TEST_F(RemoteLinkTest, ADaemonThatStaysAwayIsNotWaitedForLongByWhoLeaves) {
  auto options = link_options("a");
  options.farewell = options.standing_farewell = milliseconds(200);
  options.farewell_notice = milliseconds(1);
  auto& a = alone_in_a_round(options);
  stop_daemon();
  ASSERT_TRUE(run_until([&] { return !a.notices.empty(); }));
  a.link->send(Leave{"SIGTERM"});
  a.link->close();
  EXPECT_TRUE(run_until([&] { return a.link->last_words_out(); }, seconds(5)));
  EXPECT_NE(a.notices.back().find("this node leaves, and cannot tell the rendezvous at "), std::string::npos)
      << a.notices.back();
}

TEST_F(RemoteLinkTest, ALinkMayGoAtAnyTime) {
  start_daemon();
  for (int after_ms : {0, 1, 2, 5, 10}) {
    auto& a = agent("a");
    run_for(milliseconds(after_ms));
    a.link.reset();
  }
  EXPECT_TRUE(run_until([&] { return daemon_->sessions() == 0; }));
}

TEST_F(RemoteLinkTest, TheReceiverMayCloseTheLink) {
  start_daemon();
  auto& a = connected_agent(link_options("a"));
  int heard = 0;
  a.link->on_message([&](const DaemonMessage&) {
    ++heard;
    a.link->close();
  });
  a.link->send(Join{offer(link_options("a"))});
  EXPECT_TRUE(run_until([&] { return heard == 1 && daemon_->sessions() == 0; }));
}

TEST_F(RemoteLinkTest, M1_AnAgentNeedsAFewMessagesAndNotMore) {
  start_daemon();
  auto& a = agent("a");
  auto& b = agent("b");
  ASSERT_TRUE(run_until([&] { return a.last<Assignment>() && b.last<Assignment>(); }));
  EXPECT_LE(a.link->statistics().messages_sent, 3u);  // hello, proof, join
  // challenge, welcome, waiting, assignment; and to the one that serves the store, whom it is for
  EXPECT_LE(a.link->statistics().messages_received, 5u);
  EXPECT_LE(b.link->statistics().messages_received, 4u);
}

}  // namespace
}  // namespace muster::rendezvous
