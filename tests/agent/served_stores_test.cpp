#include "agent/served_stores.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <functional>
#include <random>

#include "agent/reserved_ports.hpp"
#include "rendezvous/store/codec.hpp"

namespace muster::agent {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using namespace std::chrono_literals;

class ServedStoresTest : public ::testing::Test {
 protected:
  boost::system::error_code connect(std::uint16_t port) {
    boost::system::error_code error;
    client.close(error);
    client.connect({asio::ip::make_address("127.0.0.1"), port}, error);
    return error;
  }

  asio::io_context io{1};
  tcp::socket client{io};
  ServedStores stores{io.get_executor(), {"127.0.0.1", {}}};
};

TEST_F(ServedStoresTest, EachStoreListensOnItsOwnPortUntilItIsClosed) {
  const auto first = stores.open(1);
  const auto second = stores.open(2);
  ASSERT_TRUE(first && second);
  EXPECT_NE(*first, *second);
  EXPECT_FALSE(connect(*first));
  EXPECT_FALSE(connect(*second));
  stores.close(1);
  EXPECT_EQ(connect(*first), asio::error::connection_refused);
  EXPECT_FALSE(connect(*second));
}

TEST_F(ServedStoresTest, AStoreIsUsedOnceSomebodyHasConnected) {
  const auto port = stores.open(1);
  ASSERT_TRUE(port);
  stores.begin_round(1, {1, 1, [] { return std::vector<LedRound::Worker>(); }});
  EXPECT_FALSE(stores.used(1));
  ASSERT_FALSE(connect(*port));
  const auto deadline = std::chrono::steady_clock::now() + 5s;
  while (!stores.used(1) && std::chrono::steady_clock::now() < deadline) io.run_one_for(10ms);
  EXPECT_TRUE(stores.used(1));
  EXPECT_FALSE(stores.used(2));
}

TEST_F(ServedStoresTest, AnAddressThatIsNotOursIsAnErrorWithItsName) {
  ServedStores elsewhere(io.get_executor(), {"192.0.2.1", {}});
  const auto port = elsewhere.open(1);
  ASSERT_FALSE(port);
  EXPECT_NE(port.error().sentence().find("192.0.2.1"), std::string::npos);
}

/// Stores that share a thread with their clients, which speak as PyTorch's do.
class ServedRoundsTest : public ::testing::Test {
 protected:
  struct Client {
    explicit Client(ServedRoundsTest& owner, std::uint16_t port) : test(owner), socket(owner.io) {
      socket.connect({asio::ip::make_address("127.0.0.1"), port});
      put(rendezvous::StoreOp::validate);
    }
    Client& put(rendezvous::StoreOp op, const std::string& key = "", const std::string& value = "",
                std::int64_t number = 0) {
      rendezvous::StoreRequest request;
      request.op = op;
      request.key = key;
      request.value = value;
      request.number = number;
      if (op == rendezvous::StoreOp::wait || op == rendezvous::StoreOp::check) request.keys = {key};
      std::string out;
      rendezvous::append_request(rendezvous::StoreDialect::c, request, out);
      asio::write(socket, asio::buffer(out));
      return *this;
    }
    /// What CHECK answers: 0 if it has the key.
    int check(const std::string& key) {
      put(rendezvous::StoreOp::check, key);
      test.await("an answer", [this] { return socket.available() > 0; });
      char answer = 9;
      asio::read(socket, asio::buffer(&answer, 1));
      return answer;
    }
    ServedRoundsTest& test;
    tcp::socket socket;
  };

  void await(const char* what, const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline)
        throw std::runtime_error(std::string("never: ") + what);
      io.run_one_for(5ms);
    }
  }
  ServedStoresOptions with_ports(PortRange ports) {
    ServedStoresOptions options;
    options.address = "127.0.0.1";
    options.ports = ports;
    options.notice = [this](const std::string& line) { said.push_back(line); };
    return options;
  }
  static LedRound led(int round, int world_size) {
    return {round, world_size, [] { return std::vector<LedRound::Worker>{{0, 100}, {1, 101}}; }};
  }
  /// `count` ports in a row that nobody has, as far as one can know. Below those that the kernel gives to clients:
  /// after a test with thousands of them no ten in a row are free for a minute.
  std::uint16_t free_ports(int count) {
    for (std::random_device dice;;) {
      std::vector<tcp::acceptor> held;
      const auto first = std::uniform_int_distribution<std::uint16_t>(20'000, 32'000)(dice);
      int free = 0;
      while (free < count && first + free < 65535) {
        auto next = rendezvous::open_listener(io.get_executor(), "127.0.0.1",
                                              static_cast<std::uint16_t>(first + free));
        if (!next) break;
        held.push_back(std::move(*next));
        ++free;
      }
      if (free == count) return first;
    }
  }

  asio::io_context io{1};
  std::vector<std::string> said;
};

TEST_F(ServedRoundsTest, C9_D18_AtOneFixedPortAConnectionBelongsToTheRoundThatAcceptedIt) {
  const auto port = free_ports(1);
  ServedStores stores(io.get_executor(), with_ports({port, port}));
  ASSERT_EQ(*stores.open(1), port);
  stores.begin_round(1, led(1, 2));
  Client old(*this, port);
  old.put(rendezvous::StoreOp::set, "/k", "of round 1");
  EXPECT_EQ(old.check("/k"), 0);
  EXPECT_FALSE(stores.used(2));

  ASSERT_EQ(*stores.open(2), port);
  // Between the rounds: a worker of the old one that goes again, and one of the new one that is early.
  {
    Client stray(*this, port);
    stray.put(rendezvous::StoreOp::set, "/stray", "1");
  }
  Client early(*this, port);
  early.put(rendezvous::StoreOp::set, "/early", "1");
  EXPECT_EQ(old.check("/early"), 1);
  EXPECT_FALSE(stores.used(2));
  stores.begin_round(2, led(2, 2));
  EXPECT_EQ(early.check("/early"), 0);
  EXPECT_EQ(early.check("/k"), 1) << "a key of the old round";
  EXPECT_EQ(early.check("/stray"), 1);
  EXPECT_EQ(old.check("/k"), 0) << "the old round's store is served on";
  stores.close(1);
  EXPECT_EQ(early.check("/early"), 0);
  Client late(*this, port);
  EXPECT_EQ(late.check("/early"), 0);
  EXPECT_THAT(said, testing::IsEmpty());
}

TEST_F(ServedRoundsTest, C7_NobodyIsServedBeforeItIsKnownWhoBelongsToTheRound) {
  ServedStores stores(io.get_executor(), with_ports({}));
  const auto port = *stores.open(1);
  Client early(*this, port);
  early.put(rendezvous::StoreOp::set, "/k", "v");
  io.run_for(50ms);
  EXPECT_FALSE(stores.used(1));
  stores.expect_clients(1, {"192.0.2.1"});
  stores.begin_round(1, led(1, 2));
  EXPECT_EQ(early.check("/k"), 0) << "loopback is this machine, and served";
  EXPECT_TRUE(stores.used(1));
}

TEST_F(ServedRoundsTest, C10_TheFirstFreePortOfARangeIsTaken) {
  const auto first = free_ports(10);
  std::vector<tcp::acceptor> others;
  for (std::uint16_t i = 0; i < 5; ++i)
    others.push_back(
        rendezvous::open_listener(io.get_executor(), "127.0.0.1", static_cast<std::uint16_t>(first + i))
            .value());
  ServedStores stores(io.get_executor(), with_ports({first, static_cast<std::uint16_t>(first + 9)}));
  EXPECT_EQ(*stores.open(1), first + 5);
  ServedStores none(io.get_executor(), with_ports({first, static_cast<std::uint16_t>(first + 4)}));
  const auto taken = std::to_string(first) + "-" + std::to_string(first + 4);
  EXPECT_THAT(none.open(1).error().sentence(),
              ::testing::StartsWith(
                  "listening on 127.0.0.1: Address already in use (EADDRINUSE): other programs have all "
                  "ports of " +
                  taken + "; " + std::to_string(first) + " is held by pid "));
}

TEST_F(ServedRoundsTest, ARoundThatDoesNotGetOnIsExplainedOnce) {
  auto options = with_ports({});
  options.stall_after = 40ms;
  ServedStores stores(io.get_executor(), options);
  const auto port = *stores.open(1);
  stores.begin_round(1, led(1, 3));
  Client zero(*this, port);
  Client one(*this, port);
  for (auto* client : {&zero, &one}) {
    client->put(rendezvous::StoreOp::ping, "", "", client == &zero ? 100 : 101);
    client->put(rendezvous::StoreOp::add, "init/", "", 1);
    client->put(rendezvous::StoreOp::wait, "/default_pg/0//cpu//0/2");
  }
  await("a line", [this] { return !said.empty(); });
  const std::string why = "ranks 0-1 wait for rank 2's gloo address; rank 2 has not connected";
  EXPECT_EQ(said.at(0), "round 1 does not get on: " + why);
  ASSERT_EQ(stores.stalls().size(), 1U);
  EXPECT_EQ(stores.stalls()[0].round, 1);
  EXPECT_EQ(stores.stalls()[0].sentence, why);
  EXPECT_EQ(stores.stalls()[0].over_unix_ms, 0);
  // It comes, and later waits itself: something new to say, and nothing that was said before.
  Client two(*this, port);
  two.put(rendezvous::StoreOp::add, "init/", "", 1)
      .put(rendezvous::StoreOp::set, "/default_pg/0//cpu//0/2", "x");
  two.put(rendezvous::StoreOp::wait, "/never");
  await("two more lines", [this] { return said.size() > 2; });
  EXPECT_EQ(said.at(1), "round 1 gets on");
  EXPECT_GE(stores.stalls()[0].over_unix_ms, stores.stalls()[0].unix_ms);
  EXPECT_EQ(said.at(2), "round 1 does not get on: rank 2 waits for key '/never'");
}

TEST_F(ServedRoundsTest, TheNodeThatIsWaitedForIsNamed) {
  auto options = with_ports({});
  options.stall_after = 40ms;
  ServedStores stores(io.get_executor(), options);
  const auto port = *stores.open(1);
  stores.expect_clients(1, {}, {{"a", "10.0.0.1", 0, 2}, {"b", "10.0.0.2", 2, 1}});
  stores.begin_round(1, led(1, 3));
  Client zero(*this, port);
  zero.put(rendezvous::StoreOp::ping, "", "", 100).put(rendezvous::StoreOp::add, "init/", "", 1);
  zero.put(rendezvous::StoreOp::wait, "/default_pg/0//cpu//0/2");
  await("a line", [this] { return !said.empty(); });
  EXPECT_EQ(
      said.at(0),
      "round 1 does not get on: rank 0 waits for rank 2's gloo address; rank 2 (node b at 10.0.0.2) has "
      "not connected; rank 1 (node a, pid 101) has not connected");
  EXPECT_EQ("round 1 does not get on: " + stores.stalls().at(0).sentence, said.at(0));
}

TEST_F(ServedRoundsTest, MoreJoinedThanTheWorldHasIsSaidOnce) {
  auto options = with_ports({});
  options.stall_after = 40ms;
  ServedStores stores(io.get_executor(), options);
  const auto port = *stores.open(1);
  stores.begin_round(1, led(1, 2));
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 6; ++i) {
    clients.push_back(std::make_unique<Client>(*this, port));
    clients.back()
        ->put(rendezvous::StoreOp::ping, "", "", 100 + i)
        .put(rendezvous::StoreOp::add, "init/", "", 1);
  }
  await("a line", [this] { return !said.empty(); });
  clients.push_back(std::make_unique<Client>(*this, port));
  clients.back()->put(rendezvous::StoreOp::add, "init/", "", 1).put(rendezvous::StoreOp::wait, "/never");
  await("a stall", [this] { return said.size() > 1; });
  EXPECT_THAT(said.at(0), testing::MatchesRegex("round 1: [3-6] workers joined a world of 2: is another job "
                                                "using this port[?]"));
  EXPECT_THAT(said.at(1), testing::HasSubstr("waits for key '/never'"));
  EXPECT_THAT(said.at(1), testing::Not(testing::HasSubstr("another job")));
  EXPECT_THAT(stores.stalls().at(0).sentence, testing::HasSubstr("another job"));
}

TEST(ReservedPorts, ThePortIsKeptForAProgramThatMayTakeItOver) {
  asio::io_context io{1};
  ReservedPorts ports({});
  const auto port = ports.open(1);
  ASSERT_TRUE(port);
  EXPECT_NE(*port, 0);
  EXPECT_NE(*ports.open(2), *port);
  EXPECT_TRUE(rendezvous::open_listener(io.get_executor(), "", *port)) << "as worker 0 does";
  ports.close(1);
  EXPECT_TRUE(rendezvous::open_listener(io.get_executor(), "", *port));
}

/// A listener whose next port is free.
asio::ip::tcp::acceptor listener_with_a_free_neighbour(asio::io_context& io) {
  std::vector<asio::ip::tcp::acceptor> passed_over;
  for (;;) {
    auto candidate = rendezvous::open_listener(io.get_executor(), "", std::uint16_t{0}).value();
    const auto port = candidate.local_endpoint().port();
    if (port < 65535 &&
        rendezvous::open_listener(io.get_executor(), "", static_cast<std::uint16_t>(port + 1)))
      return candidate;
    passed_over.push_back(std::move(candidate));
  }
}

TEST(ReservedPorts, C10_ARangeIsTriedInItsOrder) {
  asio::io_context io{1};
  const auto taken = listener_with_a_free_neighbour(io);
  const auto port = taken.local_endpoint().port();
  ReservedPorts ports({port, static_cast<std::uint16_t>(port + 1)});
  EXPECT_EQ(ports.open(1).value(), port + 1);
  ReservedPorts none({port, port});
  EXPECT_THAT(none.open(1).error().sentence(),
              ::testing::StartsWith("a port for worker 0's store, of " + std::to_string(port) +
                                    ", on all addresses: Address already in use (EADDRINUSE); " +
                                    std::to_string(port) + " is held by pid "));
}

}  // namespace
}  // namespace muster::agent
