#include "rendezvous/server/daemon.hpp"

#include <unistd.h>

#include <map>

#include "rendezvous/protocol/policy_values.hpp"
#include "tests/rendezvous/support/daemon_fixture.hpp"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;

const Token kToken("0123456789abcdef");
const Token kOther("another token, as long");

std::optional<Refused> refusal_in(const std::string& heard) {
  FrameReader reader(kMaxHandshakePayloadBytes);
  reader.feed(heard);
  while (const auto frame = reader.next())
    if (frame->type == FrameType::refused) return std::get<Refused>(*decode_daemon_message(*frame));
  return std::nullopt;
}

TEST_F(DaemonTest, TwoAgentsMeetAndGetTheirRanks) {
  start_daemon();
  auto& a = agent("a");
  auto& b = agent("b");
  ASSERT_TRUE(run_until([&] { return a.last<Assignment>() && b.last<Assignment>(); }));
  EXPECT_EQ(a.last<Assignment>()->world_size, 4);
  EXPECT_EQ(a.last<Assignment>()->first_rank + b.last<Assignment>()->first_rank, 2);
  EXPECT_EQ(a.last<Assignment>()->master_addr, "127.0.0.1") << "the link fills in its own address";
  EXPECT_EQ(a.last<Assignment>()->round, b.last<Assignment>()->round);
}

TEST_F(DaemonTest, ManyJobsAtOnceDoNotMeet) {
  policy_.min_nodes = policy_.max_nodes = 1;
  start_daemon();
  std::vector<TestAgent*> all;
  for (int i = 0; i < 20; ++i) {
    auto options = link_options("n");
    options.job = "job-" + std::to_string(i);
    all.push_back(&agent(options));
  }
  for (auto* one : all) ASSERT_TRUE(run_until([&] { return one->last<Assignment>() != nullptr; }));
  EXPECT_EQ(daemon_->jobs().size(), 20u);
}

TEST_F(DaemonTest, A14_TheIdOfAFinishedJobIsFreeAgain) {
  policy_.min_nodes = policy_.max_nodes = 1;
  start_daemon();
  for (const char* incarnation : {"first", "second"}) {
    auto options = link_options("a");
    options.incarnation = incarnation;
    auto& one = agent(options);
    ASSERT_TRUE(run_until([&] { return one.last<Assignment>() != nullptr; }));
    EXPECT_EQ(one.last<Assignment>()->round, 1) << incarnation;
    one.link->send(WorkersSucceeded{1});
    ASSERT_TRUE(run_until([&] { return one.last<JobEnded>() != nullptr; }));
    EXPECT_EQ(one.last<JobEnded>()->outcome.kind, OutcomeKind::succeeded);
    one.link->close();
  }
}

TEST_F(DaemonTest, AnotherPolicyIsRefusedWithBothValues) {
  start_daemon();
  auto& first = agent("a");
  ASSERT_TRUE(run_until([&] { return first.last<Waiting>() != nullptr; }));
  auto options = link_options("b");
  options.policy.max_restarts = 7;
  auto& other = agent(options);
  ASSERT_TRUE(run_until([&] { return other.last<Refused>() != nullptr; }));
  EXPECT_EQ(other.last<Refused>()->code, RefusalCode::incompatible_policy);
  EXPECT_EQ(other.last<Refused>()->reason, "max restarts is 0 in the job and 7 on this node");
  EXPECT_NE(log().find("max restarts is 0 in the job"), std::string::npos);
}

TEST_F(DaemonTest, AnotherServerOfTheWorkerStoreIsRefusedWithBothValues) {
  start_daemon();
  auto ours = link_options("a");
  ours.settings = {{kWorkerStoreSetting, "agent"}};
  auto& first = agent(ours);
  ASSERT_TRUE(run_until([&] { return first.last<Waiting>() != nullptr; }));
  auto options = link_options("b");
  options.settings = {{kWorkerStoreSetting, "rank0"}};
  auto& other = agent(options);
  ASSERT_TRUE(run_until([&] { return other.last<Refused>() != nullptr; }));
  EXPECT_EQ(other.last<Refused>()->reason, "worker_store is agent in the job and rank0 on this node");
}

TEST_F(DaemonTest, C7_WhoServesTheStoreIsToldWhereTheRoundsWorkersComeFrom) {
  start_daemon();
  std::map<std::string, std::vector<StoreClients>> told;
  std::vector<TestAgent*> both;
  for (const std::string node : {"a", "b"}) {
    auto options = link_options(node);
    options.own_addresses = [node] {
      return std::vector<std::string>{node == "a" ? "10.0.0.1" : "10.0.0.2"};
    };
    options.store_clients = [&told, node](const StoreClients& clients) { told[node].push_back(clients); };
    both.push_back(&agent(options));
  }
  ASSERT_TRUE(run_until([&] { return both[0]->last<Assignment>() && both[1]->last<Assignment>(); }));
  const std::string leader = both[0]->last<Assignment>()->group_rank == 0 ? "a" : "b";
  ASSERT_EQ(told.size(), 1u) << "the others need no list";
  ASSERT_EQ(told[leader].size(), 1u);
  EXPECT_EQ(told[leader][0].round, 1);
  EXPECT_EQ(told[leader][0].addresses, (std::vector<std::string>{"10.0.0.1", "10.0.0.2"}));
  // And which node has which ranks.
  const std::string other = leader == "a" ? "b" : "a";
  ASSERT_EQ(told[leader][0].nodes.size(), 2u);
  const auto& [first, second] = std::tie(told[leader][0].nodes[0], told[leader][0].nodes[1]);
  EXPECT_EQ(first.node, leader);
  EXPECT_EQ(first.first_rank, 0);
  EXPECT_EQ(second.node, other);
  EXPECT_EQ(second.first_rank, first.workers);
}

TEST_F(DaemonTest, C7_AnAddressThatANodeGetsWhileItWaitsCounts) {
  auto quick = options();
  quick.heartbeat_interval = milliseconds(200);
  start_daemon(quick);
  std::vector<std::string> addresses{"10.0.0.1"};
  std::vector<StoreClients> told;
  auto options = link_options("a");
  options.own_addresses = [&] { return addresses; };
  options.store_clients = [&](const StoreClients& clients) { told.push_back(clients); };
  auto& a = agent(options);
  ASSERT_TRUE(run_until([&] { return a.last<Waiting>() != nullptr; }));
  addresses.push_back("10.1.0.1");
  const auto known = [&] {
    const Session* session = daemon_->jobs().begin()->second->session_of("a");
    return session != nullptr && session->addresses() == addresses;
  };
  ASSERT_TRUE(run_until(known));
  auto other = link_options("b");
  other.own_addresses = [] { return std::vector<std::string>{"10.0.0.2"}; };
  other.store_clients = options.store_clients;
  auto& b = agent(other);
  ASSERT_TRUE(run_until([&] { return a.last<Assignment>() && b.last<Assignment>(); }));
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].addresses, (std::vector<std::string>{"10.0.0.1", "10.0.0.2", "10.1.0.1"}));
}

TEST_F(DaemonTest, D9_WrongVersionIsToldOnBothSides) {
  start_daemon();
  std::string hello = encode(Hello{PeerRole::agent, "mnist", "a", "", {}, {}});
  hello[kFrameHeaderBytes + 4] = 9;
  const auto refused = refusal_in(talk(hello));
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, RefusalCode::wrong_version);
  EXPECT_NE(log().find("version 9"), std::string::npos) << log();
}

TEST_F(DaemonTest, D9_AnotherProtocolIsToldWhatThisIsEvenWhenItSentALot) {
  start_daemon();
  const auto refused = refusal_in(talk("GET / HTTP/1.1\r\nHost: x\r\n\r\n" + std::string(100'000, 'x')));
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, RefusalCode::bad_magic);
}

TEST_F(DaemonTest, N1_WithoutTheTokenNothingChangesAndItIsLoggedOnce) {
  auto with_token = options();
  with_token.token = kToken;
  start_daemon(with_token);
  for (int i = 0; i < 5; ++i) {
    auto options = link_options("a");
    if (i % 2 == 0) options.token = kOther;
    auto& stranger = agent(options);
    ASSERT_TRUE(run_until([&] { return stranger.last<Refused>() != nullptr; }));
    EXPECT_EQ(stranger.last<Refused>()->code, RefusalCode::not_authenticated);
  }
  EXPECT_TRUE(daemon_->jobs().empty());
  const auto text = log();
  const auto refused = text.find("wants a token, and the peer has none");
  EXPECT_NE(refused, std::string::npos) << text;
  EXPECT_NE(text.find("refused 127.0.0.1:"), std::string::npos);
  EXPECT_EQ(text.find("wants a token", refused + 10), std::string::npos) << "once";
  auto options = link_options("a");
  options.token = kToken;
  auto& friendly = agent(options);
  EXPECT_TRUE(run_until([&] { return friendly.last<Waiting>() != nullptr; }));
}

TEST_F(DaemonTest, N1_WhoSendsOtherGarbageEachTimeFillsNoLog) {
  start_daemon();
  for (int i = 0; i < 2 * OnceInAWhile::kMaxLinesAboutOne; ++i) {
    const auto refused =
        refusal_in(talk(std::string(1, static_cast<char>(i)) + "\xff\xff\x7f" + std::string(60, 'x')));
    ASSERT_TRUE(refused) << "each of them is told";
  }
  const auto text = log();
  int lines = 0;
  for (auto at = text.find("refused 127.0.0.1:"); at != std::string::npos;
       at = text.find("refused 127", at + 1))
    ++lines;
  EXPECT_EQ(lines, OnceInAWhile::kMaxLinesAboutOne) << text;
  EXPECT_NE(text.find("no more of this address are named"), std::string::npos) << text;
}

TEST_F(DaemonTest, N1_AnOperatorWithoutTheTokenReadsNothing) {
  auto with_token = options();
  with_token.token = kToken;
  start_daemon(with_token);
  const auto heard = talk(encode(Hello{PeerRole::operator_, "", "", "", {}, {}}) + encode(Proof{}) +
                          encode(OperatorRequest{}));
  const auto refused = refusal_in(heard);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, RefusalCode::not_authenticated);
}

TEST_F(DaemonTest, ASecondAgentOfTheSameNameIsToldWhoHasIt) {
  start_daemon();
  auto& first = agent("a");
  ASSERT_TRUE(run_until([&] { return first.last<Waiting>() != nullptr; }));
  auto options = link_options("a");
  options.incarnation = "another";
  options.duplicate_patience = milliseconds(200);
  auto& second = agent(options);
  ASSERT_TRUE(run_until([&] { return second.last<Refused>() != nullptr; }));
  EXPECT_EQ(second.last<Refused>()->code, RefusalCode::duplicate_node);
  EXPECT_NE(second.last<Refused>()->reason.find("connected from 127.0.0.1:"), std::string::npos);
  EXPECT_EQ(first.last<Refused>(), nullptr) << "the first is not disturbed";
}

TEST_F(DaemonTest, AHandshakeThatTakesTooLongIsEnded) {
  auto impatient = options();
  impatient.handshake_timeout = milliseconds(100);
  start_daemon(impatient);
  const auto refused = refusal_in(talk(std::string("\x40\0\0\0\x01MS", 7)));
  ASSERT_TRUE(refused);
  EXPECT_NE(refused->reason.find("took longer than 0.1 s"), std::string::npos);
}

TEST_F(DaemonTest, AFloodOfHalfOpenHandshakesDoesNotShutOthersOut) {
  auto small = options();
  small.max_half_open = 8;
  small.half_open_patience = milliseconds(50);
  start_daemon(small);
  std::vector<boost::asio::ip::tcp::socket> flood;
  for (int i = 0; i < 40; ++i) {
    flood.emplace_back(io_).connect({boost::asio::ip::make_address("127.0.0.1"), endpoint_.port});
    run_for(milliseconds(1));
  }
  EXPECT_TRUE(run_until([&] { return daemon_->sessions() <= 2 * small.max_half_open + 1; }));
  auto& a = agent("a");
  EXPECT_TRUE(run_until([&] { return a.last<Waiting>() != nullptr; }));
}

TEST_F(DaemonTest, M3_WhoHasSaidWhoItIsIsNotTurnedAwayForTheOthersThatWait) {
  auto small = options();
  small.max_half_open = 4;
  small.half_open_patience = milliseconds(20);
  start_daemon(small);
  std::vector<boost::asio::ip::tcp::socket> slow;
  for (std::size_t i = 0; i < small.max_half_open; ++i) {
    auto& socket = slow.emplace_back(io_);
    socket.connect({boost::asio::ip::make_address("127.0.0.1"), endpoint_.port});
    const auto node = "slow-" + std::to_string(i);
    boost::asio::write(
        socket,
        boost::asio::buffer(encode(Hello{PeerRole::agent, "mnist", node, "", policy_values(policy_), {}})));
    ASSERT_TRUE(run_until([&] { return socket.available() > 0; })) << "its challenge";
  }
  auto& a = agent("a");
  run_for(milliseconds(200));
  EXPECT_EQ(daemon_->sessions(), small.max_half_open) << "the next one waits in the listen queue";
  EXPECT_EQ(daemon_->counters().refusals, 0u);
  for (auto& socket : slow) boost::asio::write(socket, boost::asio::buffer(encode(Proof{})));
  EXPECT_TRUE(run_until([&] { return a.last<Waiting>() != nullptr; }));
  EXPECT_EQ(daemon_->counters().refusals, 0u);
  EXPECT_EQ(a.link->statistics().connections, 1);
}

TEST_F(DaemonTest, MoreConnectionsThanAllowedAreToldSo) {
  auto small = options();
  small.max_sessions = 2;
  start_daemon(small);
  auto& a = agent("a");
  ASSERT_TRUE(run_until([&] { return a.last<Waiting>() != nullptr; }));
  boost::asio::ip::tcp::socket idle(io_);
  idle.connect({boost::asio::ip::make_address("127.0.0.1"), endpoint_.port});
  ASSERT_TRUE(run_until([&] { return daemon_->sessions() == 2; }));
  const auto refused = refusal_in(talk(encode(Hello{PeerRole::agent, "mnist", "b", "", {}, {}})));
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, RefusalCode::limit_reached);
}

TEST_F(DaemonTest, AnAgentThatFallsSilentIsLost) {
  auto strict = options();
  strict.heartbeat_timeout = milliseconds(200);
  strict.heartbeat_interval = std::chrono::hours(1);  // its link will not say anything by itself
  start_daemon(strict);
  auto& a = agent("a");
  ASSERT_TRUE(run_until([&] { return a.last<Waiting>() != nullptr; }));
  EXPECT_TRUE(run_until([&] { return log().find("nothing was heard for 0.2 s") != std::string::npos; }))
      << log();
}

TEST_F(DaemonTest, HeartbeatsKeepAnIdleAgent) {
  auto strict = options();
  strict.heartbeat_timeout = milliseconds(300);
  strict.heartbeat_interval = milliseconds(50);
  start_daemon(strict);
  auto& a = agent("a");
  ASSERT_TRUE(run_until([&] { return a.last<Waiting>() != nullptr; }));
  run_for(milliseconds(900));
  EXPECT_EQ(a.link->statistics().connections, 1);
  EXPECT_EQ(log().find("ended"), std::string::npos) << log();
}

TEST_F(DaemonTest, C5_APortThatIsTakenIsNamedWithItsHolder) {
  start_daemon();
  Daemon second(io_, options());
  const auto bound = second.listen();
  ASSERT_FALSE(bound);
  const auto sentence = bound.error().sentence();
  EXPECT_NE(sentence.find(endpoint_.text()), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("EADDRINUSE"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("held by pid " + std::to_string(::getpid())), std::string::npos) << sentence;
}

TEST_F(DaemonTest, N2_OnlyTheGivenAddressIsBound) {
  start_daemon();
  boost::asio::ip::tcp::socket socket(io_);
  boost::system::error_code error;
  socket.connect({boost::asio::ip::make_address("127.0.0.2"), endpoint_.port}, error);
  EXPECT_EQ(error, boost::asio::error::connection_refused);
}

TEST_F(DaemonTest, B9_IPv6IsAnAddressLikeAnyOther) {
  endpoint_ = Endpoint{"::1", 0};
  start_daemon();
  auto& a = agent("a");
  ASSERT_TRUE(run_until([&] { return a.last<Waiting>() != nullptr; }));
}

TEST_F(DaemonTest, AMessageThatCannotBeReadIsRefusedByName) {
  start_daemon();
  const auto heard = talk(encode(Hello{PeerRole::agent, "mnist", "a", "", policy_values(policy_), {}}) +
                          encode(Proof{}) + frame_bytes(FrameType::join, "nonsense"));
  const auto refused = refusal_in(heard);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, RefusalCode::malformed);
  EXPECT_NE(refused->reason.find("'join'"), std::string::npos) << refused->reason;
}

// Another agent of its name took its place while it was cut off, and saw the job to its end.
TEST_F(DaemonTest, WhoWasInARunThatIsOverDoesNotBeginTheNextOne) {
  policy_.min_nodes = 1;
  policy_.last_call = std::chrono::milliseconds(1);
  start_daemon();
  auto& successor = agent("a");
  ASSERT_TRUE(run_until([&] { return successor.last<Assignment>() != nullptr; }));
  Hello hello{PeerRole::agent, "mnist", "a", "the first agent", policy_values(policy_), {}};
  hello.job_incarnation = daemon_->jobs().at("mnist")->identity().incarnation;
  successor.link->send(WorkersSucceeded{1});
  ASSERT_TRUE(run_until([&] { return daemon_->jobs().at("mnist")->over(); }));

  const auto refused = refusal_in(talk(encode(hello) + encode(Proof{})));
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, RefusalCode::job_over);
  EXPECT_NE(refused->reason.find("another agent was its node 'a' in the end"), std::string::npos)
      << refused->reason;

  hello.job_incarnation = 0;
  talk(encode(hello) + encode(Proof{}) + frame_bytes(FrameType::join, "nonsense"));
  EXPECT_FALSE(daemon_->jobs().at("mnist")->over()) << "the id may be used again";
}

// A daemon that lost its memory has ended the job before this node was back: it never heard of the node.
TEST_F(DaemonTest, D7_WhoComesTooLateToADaemonWithoutMemoryHearsHowItEnded) {
  policy_.min_nodes = 1;
  policy_.max_restarts = 0;
  policy_.last_call = std::chrono::milliseconds(1);
  start_daemon();
  auto& first = agent("a");
  ASSERT_TRUE(run_until([&] { return first.last<Assignment>() != nullptr; }));
  WorkerFailure failure;
  failure.node = "a";
  failure.round = 1;
  failure.cause = ExitCause::signalled(9);
  first.link->send(WorkerFailed{1, failure});
  ASSERT_TRUE(run_until([&] { return first.last<JobEnded>() != nullptr; }));

  auto options = link_options("b");
  Hello hello{PeerRole::agent, "mnist", "b", options.incarnation, policy_values(policy_), {}};
  hello.job_incarnation = daemon_->jobs().at("mnist")->identity().incarnation;
  Resume resume;
  resume.offer = offer(options);
  resume.round = 1;
  resume.group_rank = 1;
  resume.group_world_size = 2;
  const auto heard = talk(encode(hello) + encode(Proof{}) + encode(AgentMessage(resume)) +
                          frame_bytes(FrameType::join, "nonsense"));
  EXPECT_NE(heard.find("was killed by SIGKILL"), std::string::npos) << heard;
  EXPECT_EQ(heard.find("give each node a name"), std::string::npos);
}

// What they say of it lets a daemon that has lost its memory take them for one run.
TEST_F(DaemonTest, ARunKeepsItsIncarnationWhenTheDaemonForgetsIt) {
  start_daemon();
  Hello hello{PeerRole::agent, "mnist", "a", "", policy_values(policy_), {}};
  hello.job_incarnation = 77;
  talk(encode(hello) + encode(Proof{}) + frame_bytes(FrameType::join, "nonsense"));
  EXPECT_EQ(daemon_->jobs().at("mnist")->identity().incarnation, 77u);
}

TEST_F(DaemonTest, OneNodeCannotSpeakForAnother) {
  start_daemon();
  auto options = link_options("a");
  auto& liar = connected_agent(options);
  options.node = "b";
  liar.link->send(Join{offer(options)});
  ASSERT_TRUE(run_until([&] { return liar.last<Refused>() != nullptr; }));
  EXPECT_EQ(liar.last<Refused>()->code, RefusalCode::malformed);
}

}  // namespace
}  // namespace muster::rendezvous
