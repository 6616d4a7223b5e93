// Waits for many keys that end early: what they leave is cleared up bit by bit, and nobody notices meanwhile.
#include "rendezvous/store/waits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/rendezvous/store/requests.hpp"

namespace muster::rendezvous {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::size_t many = 20'000;

std::vector<std::string> names_of_keys() {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < many; ++i) names.push_back("key " + std::to_string(i));
  return names;
}

struct LongWaits : testing::Test {
  void begin(StoreConnectionId id) { waits.begin(id, keys, StoreWaits::Kind::keys); }
  StoreWoken write_all() {
    StoreWoken woken;
    for (const auto key : keys) waits.key_written(key, woken);
    return woken;
  }

  const std::vector<std::string> names = names_of_keys();
  const std::vector<std::string_view> keys{names.begin(), names.end()};
  StoreWaits waits;
};

TEST_F(LongWaits, OneThatIsDroppedIsClearedUpInPieces) {
  begin(1);
  const auto all = waits.bytes();
  waits.drop(1);
  EXPECT_FALSE(waits.waiting(1));
  EXPECT_TRUE(waits.has_traces());
  waits.clear_up(many / 2);
  EXPECT_NEAR(static_cast<double>(waits.bytes()), static_cast<double>(all) / 2,
              static_cast<double>(all) / 10);
  EXPECT_TRUE(waits.has_traces());
  waits.clear_up(many);
  EXPECT_EQ(waits.bytes(), 0U);
  EXPECT_FALSE(waits.has_traces());
}

TEST_F(LongWaits, OthersForTheSameKeysWakeWhateverIsClearedUp) {
  for (const StoreConnectionId id : {1, 2, 3}) begin(id);
  waits.drop(1);
  waits.drop(3);
  waits.clear_up(many / 3);
  EXPECT_THAT(write_all(), ElementsAre(2));
  waits.clear_up(many * 3);
  EXPECT_EQ(waits.bytes(), 0U);
  EXPECT_FALSE(waits.has_traces());
}

TEST_F(LongWaits, TheSameConnectionMayWaitForThemAgainAtOnce) {
  begin(1);
  waits.drop(1);
  begin(1);
  waits.drop(1);
  begin(1);
  EXPECT_EQ(waits.keys_of(1).size(), many);
  waits.clear_up(many + many / 2);
  EXPECT_EQ(waits.keys_of(1).size(), many);
  EXPECT_THAT(write_all(), ElementsAre(1));
  EXPECT_EQ(waits.bytes(), 0U);
}

TEST_F(LongWaits, ADroppedOneTakesNoItemOfAQueueAndIsNotTheOldest) {
  begin(1);
  waits.next_period();
  waits.drop(1);
  EXPECT_EQ(waits.periods_of_oldest(), 0U);
  const std::string_view queue[] = {keys[5]};
  waits.begin(2, queue, StoreWaits::Kind::keys);
  StoreWoken woken;
  waits.item_queued(queue[0], woken);
  EXPECT_THAT(woken, ElementsAre(2));
  waits.clear_up(many);
  EXPECT_EQ(waits.bytes(), 0U);
}

TEST_F(LongWaits, TheServerClearsUpByItself) {
  RunningStore store;
  StoreRequest wait;
  wait.op = StoreOp::wait;
  wait.keys = keys;
  std::string bytes = magic;
  append_request(StoreDialect::c, wait, bytes);
  {
    RawClient gone(store.port());
    gone.send(bytes);
    store.await("the wait has begun", [](auto& c) { return c.stored_bytes > many * 100; });
  }
  store.await("it has left nothing", [](auto& c) { return c.stored_bytes == 0 && c.connections == 0; });
  expect_served(store);
}

}  // namespace
}  // namespace muster::rendezvous
