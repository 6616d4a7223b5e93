#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/rendezvous/store/requests.hpp"
#include "tests/rendezvous/store/running_store.hpp"

namespace muster::rendezvous {
namespace {

using testing::HasSubstr;

TEST(StoreServerLimits, AnAnnouncedLengthAllocatesNothing) {
  StoreLimits limits;
  limits.value_bytes_max = 1UL << 40;
  limits.request_bytes_max = 1UL << 41;
  RunningStore store(limits);
  std::vector<RawClient> clients;
  for (int i = 0; i < 50; ++i) {
    clients.emplace_back(store.port());
    std::string announcing = request(StoreOp::set, "/k", "x");
    const std::uint64_t length = 1UL << 39;
    announcing.replace(announcing.size() - 9, 8, reinterpret_cast<const char*>(&length), 8);
    clients.back().send(magic + announcing);
  }
  store.await("all bytes came", [](auto& c) { return c.requests_total == 50 && c.buffered_bytes > 0; });
  EXPECT_LT(store.counters().buffered_bytes, 50U * 256);
}

TEST(StoreServerLimits, BufferedBytesMaxHolds) {
  StoreLimits limits;
  limits.buffered_bytes_max = 1UL << 20;
  RunningStore store(limits);
  RawClient greedy(store.port());
  greedy.send_anyhow(magic + request(StoreOp::set, "/k", std::string(8UL << 20, 'x')));
  EXPECT_NE(greedy.receive(1).size(), 1U);
  ASSERT_EQ(store.notices().size(), 1U);
  EXPECT_THAT(store.notices()[0], HasSubstr("buffered_bytes_max"));
  EXPECT_EQ(store.counters().buffered_bytes, 0U);
  expect_served(store);
}

TEST(StoreServerLimits, WhoHoldsMostIsClosedWhenThereIsNoRoom) {
  StoreLimits limits;
  limits.buffered_bytes_max = 11'000'000;  // what is counted is the room, up to twice of what is in it
  RunningStore store(limits);
  const auto part_of_a_set = [](std::size_t bytes) {
    return magic + request(StoreOp::set, "/k", std::string(bytes + 1, 'x')).substr(0, bytes);
  };
  RawClient greedy(store.port());
  greedy.send(part_of_a_set(5'000'000));
  store.await("the greedy one's part came", [](auto& c) { return c.buffered_bytes >= 5'000'000; });
  std::vector<RawClient> modest;
  for (auto before = store.counters(); before.refused_total == 0; before = store.counters()) {
    modest.emplace_back(store.port());
    modest.back().send(part_of_a_set(1'000'000));
    store.await("the modest one's part came", [&](auto& c) {
      return c.buffered_bytes >= before.buffered_bytes + 1'000'000 || c.refused_total > 0;
    });
  }
  greedy.expect_closed();
  EXPECT_THAT(store.notices().at(0), HasSubstr("buffered_bytes_max"));
  EXPECT_EQ(store.counters().connections, modest.size());
  EXPECT_EQ(store.counters().refused_total, 1U);
}

TEST(StoreServerLimits, WhoNeverReadsKeepsNobodyFromWriting) {
  StoreLimits limits;
  limits.stored_bytes_max = 64UL << 20;
  RunningStore store(limits);
  RawClient writer(store.port());
  writer.send(magic);
  const std::string value(8UL << 20, 'x');  // more than a socket takes
  std::vector<RawClient> lazy;
  for (int i = 0; i < 12; ++i) {
    writer.send(request(StoreOp::set, "/k", value) + request(StoreOp::cancel_wait));
    writer.expect_hex("01");
    const auto before = store.counters().requests_total;
    lazy.emplace_back(store.port());
    lazy.back().send(magic + request(StoreOp::get, "/k"));
    store.await("it has asked", [&](auto& c) { return c.requests_total == before + 2; });
  }
  EXPECT_THAT(store.notices().at(0), HasSubstr("has yet to read"));
  EXPECT_LE(store.counters().stored_bytes, limits.stored_bytes_max);
  EXPECT_GT(store.counters().connections, 5U) << "no more are closed than need be";
}

TEST(StoreServerLimits, AFewRequestsForMuchHoldNobodyUpAndTakeNoRoom) {
  RunningStore store;
  const std::string value(1UL << 20, 'x');
  constexpr std::size_t keys = 200;
  RawClient writer(store.port());
  writer.send(magic + request(StoreOp::set, "/k", value) + request(StoreOp::cancel_wait));
  writer.expect_hex("01");
  StoreRequest all;
  all.op = StoreOp::multi_get;
  all.keys.assign(keys, "/k");
  std::string asked = magic;
  ASSERT_TRUE(append_request(StoreDialect::c, all, asked));
  std::vector<RawClient> lazy;
  for (int i = 0; i < 30; ++i) {
    lazy.emplace_back(store.port());
    lazy.back().send(asked);
  }
  store.await("all have asked", [](auto& c) { return c.requests_total == 3 + 2 * 30; });
  EXPECT_LT(store.counters().buffered_bytes, 4UL << 20) << "not 30 times 200 MiB";
  expect_served(store);
  writer.send(request(StoreOp::set, "/k", "replaced"));  // what was asked for before it comes whole
  for (std::size_t i = 0; i < keys; ++i) {
    lazy.front().expect_hex("00 00 10 00 00 00 00 00");
    ASSERT_TRUE(lazy.front().receive(value.size()) == value) << i;
  }
}

TEST(StoreServerLimits, ConnectionsMaxHolds) {
  StoreLimits limits;
  limits.connections_max = 2;
  RunningStore store(limits);
  RawClient one(store.port());
  store.await("one", [](auto& c) { return c.connections == 1; });
  RawClient two(store.port());
  store.await("two", [](auto& c) { return c.connections == 2; });
  RawClient three(store.port());
  three.expect_closed();
  EXPECT_THAT(store.notices().at(0), HasSubstr("connections_max"));
  one.close();
  store.await("room again", [](auto& c) { return c.connections == 1; });
  expect_served(store);
}

TEST(StoreServerLimits, AClientThatDoesNotReadIsNoLongerReadAndCatchesUpLater) {
  StoreLimits limits;
  limits.output_pause_bytes = 64UL << 10;
  RunningStore store(limits);
  const std::string value(1UL << 20, 'x');
  RawClient lazy(store.port());
  lazy.send(magic + request(StoreOp::set, "/big", value));
  constexpr int gets = 60;
  std::string many;
  for (int i = 0; i < gets; ++i) many += request(StoreOp::get, "/big");
  lazy.send(many);
  expect_served(store);
  EXPECT_LT(store.counters().buffered_bytes, 8UL << 20) << "not sixty replies of 1 MiB";
  for (int i = 0; i < gets; ++i) ASSERT_EQ(lazy.receive(8 + value.size()).size(), 8 + value.size()) << i;
  lazy.send(request(StoreOp::cancel_wait));
  lazy.expect_hex("01");
  store.await("the room is given back", [](auto& c) { return c.buffered_bytes < 256; });
}

}  // namespace
}  // namespace muster::rendezvous
