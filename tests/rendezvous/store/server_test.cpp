#include "rendezvous/store/server.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <boost/asio/ip/udp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <fstream>
#include <random>

#include "rendezvous/store/wire.hpp"
#include "tests/rendezvous/store/requests.hpp"
#include "tests/rendezvous/store/running_store.hpp"
#include "tests/support/without_descriptors.hpp"

namespace muster::rendezvous {
namespace {

using testing::HasSubstr;

/// Resident memory of this process in bytes.
std::size_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  in >> total >> resident;
  return resident * 4096;
}

TEST(StoreServer, AWaiterWakesWhenAnotherClientSets) {
  RunningStore store;
  RawClient waiter(store.port());
  RawClient setter(store.port());
  waiter.send(magic + request(StoreOp::wait, "/k"));
  store.await("the wait is there", [](auto& c) { return c.requests_total == 2; });
  setter.send(request(StoreOp::set, "/k", "v", 0, StoreDialect::a));
  waiter.expect_hex("00");
  waiter.send(request(StoreOp::get, "/k"));
  waiter.expect_hex("01 00 00 00 00 00 00 00 76");
}

TEST(StoreServer, CancelWaitKeepsTheConnectionInStep) {
  RunningStore store;
  RawClient client(store.port());
  client.send(magic + request(StoreOp::wait, "/x"));
  client.send(request(StoreOp::cancel_wait));
  client.expect_hex("01");
  client.send(request(StoreOp::set, "/x", "v") + request(StoreOp::check, "/x"));
  client.expect_hex("00");
  client.send(request(StoreOp::wait, "/x") + request(StoreOp::cancel_wait));
  client.expect_hex("00 01");
}

TEST(StoreServer, DialectADropsAWaitWhenTheClientGoesOn) {
  RunningStore store;
  RawClient old(store.port());
  old.send(request(StoreOp::wait, "/late", {}, 0, StoreDialect::a));
  old.send(request(StoreOp::num_keys, {}, {}, 0, StoreDialect::a));
  old.expect_hex("00 00 00 00 00 00 00 00");
  RawClient setter(store.port());
  setter.send(magic + request(StoreOp::set, "/late", "1") + request(StoreOp::num_keys));
  setter.expect_hex("01 00 00 00 00 00 00 00");
  old.send(request(StoreOp::num_keys, {}, {}, 0, StoreDialect::a));
  old.expect_hex("01 00 00 00 00 00 00 00");
}

TEST(StoreServer, RequestsGluedBehindAWaitAreAnsweredAfterIt) {
  RunningStore store;
  RawClient client(store.port());
  client.send(magic + request(StoreOp::wait, "/k") + request(StoreOp::get, "/k") +
              request(StoreOp::wait, "/l") + request(StoreOp::num_keys));
  store.await("the wait is there", [](auto& c) { return c.requests_total == 2; });
  RawClient setter(store.port());
  setter.send(magic + request(StoreOp::set, "/k", "v") + request(StoreOp::set, "/l", "w"));
  client.expect_hex("00 01 00 00 00 00 00 00 00 76 00 02 00 00 00 00 00 00 00");
}

TEST(StoreServer, AClientThatDiesWaitingOrHalfWayThroughARequestLeavesNothing) {
  RunningStore store;
  {
    RawClient waiter(store.port());
    waiter.send(magic + request(StoreOp::wait, "/k"));
    RawClient held(store.port());
    held.send(magic + request(StoreOp::wait, "/k") + request(StoreOp::num_keys));
    RawClient half(store.port());
    half.send(magic + request(StoreOp::set, "/half", std::string(100'000, 'x')).substr(0, 60'000));
    store.await("all are there", [](auto& c) {
      return c.connections == 3 && c.requests_total == 5 && c.buffered_bytes > 59'000;
    });
  }
  store.await("all are gone", [](auto& c) { return c.connections == 0; });
  EXPECT_EQ(store.counters().buffered_bytes, 0U);
  EXPECT_EQ(store.counters().stored_bytes, 0U);
  EXPECT_TRUE(store.notices().empty()) << "workers are killed in the middle of things: no news";
  expect_served(store);
}

TEST(StoreServer, SilentConnectionsStay) {
  RunningStore store;
  RawClient callback_channel(store.port());  // PyTorch up to 2.0 opens one for each store, and never writes
  expect_served(store);
  store.await("only the silent one is left", [](auto& c) { return c.connections == 1; });
  callback_channel.send(request(StoreOp::watch_key, "/k", {}, 0, StoreDialect::a));
  callback_channel.expect_hex("03");
}

TEST(StoreServer, BothFamiliesAtOneWildcard) {
  RunningStore store({}, "");
  expect_served(store);
  RawClient v6(store.port(), "::1");
  v6.send(magic + request(StoreOp::get, "/alive"));
  v6.expect_hex("03 00 00 00 00 00 00 00 79 65 73");
}

TEST(StoreServer, WhatIsNoStoreClientIsClosedWithOneLineForItsAddress) {
  std::mt19937 random(5);
  std::vector<std::string> strangers = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                                        from_hex("16 03 01 02 00 01 00 01 fc 03 03"),
                                        "SSH-2.0-x\r\n",
                                        from_hex("00 3c 85 f7 ce 0d 00 00 10 92"),
                                        from_hex("00 ce f7 85 3d 00 00 00 00"),
                                        magic + from_hex("13"),
                                        magic + from_hex("03 00 00 00 00 00 01 00 00"),
                                        magic + from_hex("06 ff ff ff ff ff ff ff ff"),
                                        from_hex("02 00 00 00 00 00 00 00 80"),
                                        std::string(4096, '\xff')};
  RunningStore store;
  RawClient working(store.port());
  working.send(magic + request(StoreOp::wait, "/job"));
  for (const auto& bytes : strangers) {
    RawClient stranger(store.port());
    stranger.send_anyhow(bytes);
    stranger.expect_closed();
  }
  EXPECT_EQ(store.counters().refused_total, strangers.size());
  ASSERT_EQ(store.notices().size(), 1U) << "they are of one address";
  EXPECT_THAT(store.notices()[0], HasSubstr("the connection from 127.0.0.1:"));
  EXPECT_THAT(store.notices()[0], HasSubstr("it looks like HTTP"));
  for (int i = 0; i < 200; ++i) {
    std::string noise(1 + random() % 300, '\0');
    for (auto& byte : noise) byte = static_cast<char>(random());
    RawClient(store.port()).send_anyhow(noise);
  }
  expect_served(store);
  RawClient setter(store.port());
  setter.send(magic + request(StoreOp::set, "/job", "runs on"));
  working.expect_hex("00");
}

TEST(StoreServer, AStrangerDoesNotHideWhatAWorkerOfItsHostIsRefused) {
  StoreLimits limits;
  limits.value_bytes_max = 1000;
  limits.reported_peers_max = 4;
  RunningStore store(limits);
  const auto refused = [&](const std::string& bytes) {
    RawClient client(store.port());
    client.send_anyhow(bytes);
    client.expect_closed();
  };
  const std::string probe = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  const std::string large = magic + request(StoreOp::set, "/k", std::string(1001, 'v'));
  for (int i = 0; i < 3; ++i) {
    refused(probe);
    refused(large);
    refused(magic + request(StoreOp::set, "/n", "no number") + request(StoreOp::add, "/n", "", 1));
  }
  ASSERT_EQ(store.notices().size(), 3U);
  EXPECT_THAT(store.notices()[0], HasSubstr("it looks like HTTP"));
  EXPECT_THAT(store.notices()[1], HasSubstr("value_bytes_max"));
  EXPECT_THAT(store.notices()[2], HasSubstr("ADD"));
  // All in all there are at most as many lines as the limit says, and one that says so.
  refused(magic + request(StoreOp::set, std::string(70'000, 'k'), "v"));
  refused(magic + from_hex("06 ff ff ff ff ff ff ff ff"));
  refused(magic + from_hex("13"));
  EXPECT_EQ(store.notices().size(), 4U) << "noise is noise";
  refused(magic + from_hex("06 01 00 02 00 00 00 00 00"));
  ASSERT_EQ(store.notices().size(), 5U);
  EXPECT_THAT(store.notices()[4], HasSubstr("no more closed connections are reported"));
}

TEST(StoreServer, BigValuesGoThroughWhole) {
  RunningStore store;
  std::string value(8UL << 20, '\0');
  for (std::size_t i = 0; i < value.size(); ++i) value[i] = static_cast<char>(i * 31 >> 3);
  RawClient client(store.port());
  client.send(magic + request(StoreOp::set, "/big", value) + request(StoreOp::get, "/big"));
  client.expect_hex("00 00 80 00 00 00 00 00");
  EXPECT_TRUE(client.receive(value.size()) == value);
}

TEST(StoreServer, ManyClientsWaitForOneKey) {
  RunningStore store;
  std::vector<RawClient> clients;
  for (int i = 0; i < 500; ++i) {
    clients.emplace_back(store.port());
    clients.back().send(magic + request(StoreOp::wait, "/go"));
  }
  store.await("all wait", [](auto& c) { return c.requests_total == 1000; });
  clients.front().send(request(StoreOp::cancel_wait) + request(StoreOp::set, "/go", "1"));
  clients.front().expect_hex("01");
  for (std::size_t i = 1; i < clients.size(); ++i) clients[i].expect_hex("00");
  EXPECT_EQ(store.counters().wakeups_total, 499U);
}

TEST(StoreServer, M3_ThousandsOfConnectionsAtOnceAreAllServed) {
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = files.rlim_max;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  const int count = static_cast<int>(std::min<rlim_t>(9000, (files.rlim_cur - 500) / 2));
  RunningStore store;
  const auto begin = std::chrono::steady_clock::now();
  std::vector<RawClient> clients;
  clients.reserve(static_cast<std::size_t>(count));
  const auto before = resident_bytes();
  for (int i = 0; i < count; ++i) clients.emplace_back(store.port());
  store.await("all are accepted", [&](auto& c) { return c.connections == static_cast<std::size_t>(count); });
  const auto took = std::chrono::steady_clock::now() - begin;
  for (auto& client : clients) client.send(magic + request(StoreOp::ping, {}, {}, 7));
  for (auto& client : clients) client.expect_hex("07 00 00 00");
  EXPECT_LT(took, std::chrono::seconds(10));
  const auto grown = (resident_bytes() - before) / static_cast<std::size_t>(count);
  RecordProperty("connections", count);
  RecordProperty("bytes_per_connection", static_cast<int>(grown));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(grown, 4096U) << "bytes for each idle connection, client side included";
#endif
}

TEST(StoreServer, RunningOutOfDescriptorsKeepsClientsInTheBacklog) {
  MUSTER_NEEDS_NO_DESCRIPTOR_FOR_TYPE_CHECKS();
  RunningStore store;
  RawClient early(store.port());
  store.await("the first is there", [](auto& c) { return c.connections == 1; });
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  RawClient late(store.port());
  store.await("the second is there", [](auto& c) { return c.connections == 2; });
  std::vector<UniqueFd> hoard;
  const auto small = rlimit{200, files.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &small), 0);
  for (;;) {
    UniqueFd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!fd) break;
    hoard.push_back(std::move(fd));
  }
  hoard.pop_back();  // for the client's own end
  RawClient queued(store.port());
  queued.send(magic + request(StoreOp::cancel_wait));
  store.await("a notice", [&](auto&) { return !store.notices().empty(); });
  early.send(magic + request(StoreOp::cancel_wait));
  early.expect_hex("01");
  hoard.clear();
  queued.expect_hex("01");
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  EXPECT_THAT(store.notices().at(0),
              HasSubstr("EMFILE"));  // not before: UBSan's checks of matchers open files
}

TEST(StoreServer, C7_D18_StoresShareNothing) {
  RunningStore round_one;
  RawClient stray(round_one.port());
  stray.send(magic + request(StoreOp::add, "init/", {}, 1) + request(StoreOp::set, "/k", "old"));
  stray.expect_hex("01 00 00 00 00 00 00 00");
  RunningStore round_two;
  RawClient worker(round_two.port());
  worker.send(magic + request(StoreOp::check, "/k") + request(StoreOp::add, "init/", {}, 1));
  worker.expect_hex("01 01 00 00 00 00 00 00 00");
}

/// An address of this machine by which it leaves it; empty: it has none.
std::string outgoing_address() {
  boost::asio::io_context io;
  boost::asio::ip::udp::socket socket(io);
  boost::system::error_code error;
  socket.connect({boost::asio::ip::make_address("192.0.2.1"), 9}, error);
  return error ? "" : socket.local_endpoint().address().to_string();
}

TEST(StoreServer, C7_OnlyTheNamedAddressesAreServedAndTheOthersAreNamedOnce) {
  const auto own = outgoing_address();
  if (own.empty()) GTEST_SKIP() << "this machine has no address but loopback";
  for (const std::string& bound :
       {own, std::string()}) {  // alone, and inside IPv6 as a socket of both shows it
    RunningStore store({}, bound);
    const auto only = [&](const std::string& address) {
      store.ask([&](StoreServer& server) {
        server.serve_only({boost::asio::ip::make_address(address)});
        return true;
      });
    };
    const auto refused = [&] {
      boost::asio::io_context io;
      boost::asio::ip::tcp::socket client(io);
      client.connect({boost::asio::ip::make_address(own), store.port()});
      boost::system::error_code error;
      boost::asio::write(client, boost::asio::buffer(magic + request(StoreOp::ping, "", "", 1)), error);
      char answer;
      boost::asio::read(client, boost::asio::buffer(&answer, 1), error);
      return error.failed();
    };
    only("192.0.2.7");
    EXPECT_TRUE(refused());
    EXPECT_TRUE(refused());
    ASSERT_EQ(store.notices().size(), 1u);
    EXPECT_THAT(store.notices()[0], HasSubstr("the connection from " + own + ":"));
    EXPECT_THAT(store.notices()[0], HasSubstr("no node of this round has that address"));
    EXPECT_EQ(store.counters().refused_total, 2u);
    EXPECT_EQ(store.counters().requests_total, 0u);
    only(own);
    EXPECT_FALSE(refused());
  }
}

TEST(StoreServer, DiagnosisNamesPeers) {
  RunningStore store;
  RawClient client(store.port());
  client.send(magic + request(StoreOp::ping, {}, {}, 4711) + request(StoreOp::add, "init/", {}, 1) +
              request(StoreOp::wait, "/default_pg/0//cpu//0/7"));
  store.await("the wait is there", [](auto& c) { return c.requests_total == 4; });
  const auto diagnosis = store.ask([](StoreServer& server) { return server.diagnosis(); });
  EXPECT_EQ(diagnosis.joined, 1);
  ASSERT_EQ(diagnosis.connections.size(), 1U);
  EXPECT_EQ(diagnosis.connections[0].pid, 4711U);
  EXPECT_THAT(diagnosis.connections[0].peer, HasSubstr("127.0.0.1:"));
  EXPECT_THAT(diagnosis.connections[0].waits_for, testing::ElementsAre("/default_pg/0//cpu//0/7"));
}

TEST(StoreServer, StopClosesEverything) {
  RunningStore store;
  RawClient waiter(store.port());
  waiter.send(magic + request(StoreOp::wait, "/k"));
  store.await("the wait is there", [](auto& c) { return c.requests_total == 2; });
  store.ask([](StoreServer& server) {
    server.stop();
    server.stop();
    return 0;
  });
  waiter.expect_closed();
  EXPECT_TRUE(
      StoreSocket::connect(store.endpoint(), std::chrono::steady_clock::now() + patience).has_error());
}

TEST(OpenListener, ErrorsNameAddressPortAndErrno) {
  boost::asio::io_context io;
  const auto first = open_listener(io.get_executor(), "127.0.0.1", 0);
  const auto port = first->local_endpoint().port();
  const auto second = open_listener(io.get_executor(), "127.0.0.1", port);
  ASSERT_TRUE(second.has_error());
  EXPECT_EQ(second.error().sentence(), "listening on 127.0.0.1:" + std::to_string(port) +
                                           ": Address already in use (EADDRINUSE); held by pid " +
                                           std::to_string(::getpid()) + " (store_server_te)");
  EXPECT_EQ(open_listener(io.get_executor(), "localhost", 1).error().sentence(),
            "listening on localhost:1: not a numeric address");
  EXPECT_THAT(open_listener(io.get_executor(), "203.0.113.1", 0).error().sentence(),
              HasSubstr("(EADDRNOTAVAIL)"));
}

TEST(OpenListener, SocketsAreCloseOnExec) {
  boost::asio::io_context io;
  auto listener = open_listener(io.get_executor(), "", 0);
  EXPECT_TRUE(::fcntl(listener->native_handle(), F_GETFD) & FD_CLOEXEC);
}

}  // namespace
}  // namespace muster::rendezvous
