#include "rendezvous/store/engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include "rendezvous/store/wire.hpp"
#include "tests/rendezvous/store/hex.hpp"

namespace muster::rendezvous {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// One keyspace, driven by calls that read like the protocol's.
class EngineTest : public testing::Test {
 protected:
  std::string run(StoreConnectionId id, StoreRequest request) {
    StoreOutput reply;
    refusal = engine.handle(id, request, reply, woken);
    return reply.text();
  }
  StoreRequest request(StoreOp op, std::string_view key = {}, std::string_view value = {}) {
    StoreRequest made;
    made.op = op;
    made.key = key;
    made.value = value;
    return made;
  }
  void set(std::string_view key, std::string_view value, StoreConnectionId id) {
    EXPECT_EQ(run(id, request(StoreOp::set, key, value)), "");
  }
  std::string get(std::string_view key) {
    const auto reply = run(b, request(StoreOp::get, key));
    EXPECT_EQ(wire::get<std::uint64_t>(reply, 0), reply.size() - 8);
    return reply.substr(8);
  }
  std::int64_t add(std::string_view key, std::int64_t delta, StoreConnectionId id) {
    auto made = request(StoreOp::add, key);
    made.number = delta;
    const auto reply = run(id, made);
    return reply.size() == 8 ? wire::get<std::int64_t>(reply, 0) : -999;
  }
  std::string compare_set(std::string_view key, std::string_view expected, std::string_view desired) {
    auto made = request(StoreOp::compare_set, key, expected);
    made.desired = desired;
    return run(a, made).substr(8);
  }
  std::string wait(StoreConnectionId id, std::vector<std::string_view> keys) {
    auto made = request(StoreOp::wait);
    made.keys = std::move(keys);
    return to_hex(run(id, made));
  }
  std::string check(std::vector<std::string_view> keys) {
    auto made = request(StoreOp::check);
    made.keys = std::move(keys);
    return to_hex(run(a, made));
  }
  std::string barrier(StoreConnectionId id, std::string_view key, std::int64_t world_size) {
    auto made = request(StoreOp::barrier, key);
    made.number = world_size;
    return to_hex(run(id, made));
  }
  StoreWoken take_woken() { return std::exchange(woken, {}); }

  StoreEngine engine;
  StoreConnectionId a = engine.connect();
  StoreConnectionId b = engine.connect();
  StoreConnectionId c = engine.connect();
  StoreWoken woken;
  std::optional<std::string> refusal;
};

TEST_F(EngineTest, CompareSetInAllFourCases) {
  EXPECT_EQ(compare_set("/c", "q", "x"), "q") << "absent, something expected: the expectation comes back";
  EXPECT_EQ(check({"/c"}), "01");
  EXPECT_EQ(compare_set("/c", "", "x"), "x") << "absent, nothing expected: stored";
  EXPECT_EQ(compare_set("/c", "q", "y"), "x") << "different: the current value";
  EXPECT_EQ(compare_set("/c", "x", "y"), "y") << "equal: stored";
  EXPECT_EQ(get("/c"), "y");
}

TEST_F(EngineTest, CompareSetWakesWaiters) {
  EXPECT_EQ(wait(b, {"/c"}), "");
  compare_set("/c", "", "x");
  EXPECT_THAT(take_woken(), ElementsAre(b));
}

TEST_F(EngineTest, AddKeepsDecimalText) {
  EXPECT_EQ(add("/n", 5, a), 5);
  EXPECT_EQ(get("/n"), "5");
  EXPECT_EQ(add("/n", -7, a), -2);
  EXPECT_EQ(get("/n"), "-2");
  EXPECT_EQ(add("/zero", 0, a), 0) << "delta 0 creates the key";
  EXPECT_EQ(get("/zero"), "0");
  set("/spaced", " +40 apples", a);
  EXPECT_EQ(add("/spaced", 2, a), 42);
}

TEST_F(EngineTest, AddRefusesWhatIsNoNumber) {
  for (const std::string_view text : {"", "x", "+-3", "-", "99999999999999999999"}) {
    set("/n", text, a);
    EXPECT_EQ(add("/n", 1, a), -999) << text;
    ASSERT_TRUE(refusal);
    EXPECT_THAT(*refusal, HasSubstr("ADD of key '/n': its value '" + std::string(text) +
                                    "' is no decimal number of 64 bits"));
    EXPECT_EQ(get("/n"), text);
  }
  set("/n", "9223372036854775807", a);
  EXPECT_EQ(add("/n", 1, a), -999);
  EXPECT_THAT(*refusal, HasSubstr("do not fit 64 bits"));
}

TEST_F(EngineTest, GetOfAnAbsentKeyIsEmptyAndCreatesNothing) {
  EXPECT_EQ(get("/nope"), "");
  EXPECT_EQ(engine.keys(), 0U);
}

TEST_F(EngineTest, WaitEndsWithTheLastMissingKey) {
  set("/here", "", a);
  EXPECT_EQ(wait(b, {"/here"}), "00");
  EXPECT_EQ(wait(b, {}), "00");
  EXPECT_EQ(wait(b, {"/x", "/here", "/y", "/x"}), "");
  set("/x", "1", a);
  set("/x", "2", a);
  EXPECT_THAT(take_woken(), IsEmpty());
  EXPECT_TRUE(engine.waiting(b));
  add("/y", 1, a);
  EXPECT_THAT(take_woken(), ElementsAre(b));
  EXPECT_FALSE(engine.waiting(b));
}

TEST_F(EngineTest, AKeyDeletedAgainStaysCounted) {
  EXPECT_EQ(wait(b, {"/x", "/y"}), "");
  set("/x", "1", a);
  run(a, request(StoreOp::delete_key, "/x"));
  set("/y", "1", a);
  EXPECT_THAT(take_woken(), ElementsAre(b));
}

TEST_F(EngineTest, EveryWriteWakes) {
  const auto wakes = [&](const StoreRequest& write) {
    EXPECT_EQ(wait(b, {"/w"}), "");
    run(a, write);
    EXPECT_THAT(take_woken(), ElementsAre(b)) << name_of(write.op);
    run(a, request(StoreOp::delete_key, "/w"));
  };
  wakes(request(StoreOp::set, "/w", "v"));
  wakes(request(StoreOp::add, "/w"));
  wakes(request(StoreOp::append, "/w", "v"));
  auto several = request(StoreOp::multi_set);
  several.keys = {"/v", "/w"};
  several.values = {"1", "2"};
  wakes(several);
}

TEST_F(EngineTest, AllWaitersOfAKeyWakeInOrder) {
  for (const auto id : {b, c, a}) EXPECT_EQ(wait(id, {"/k"}), "");
  set("/k", "v", a);
  EXPECT_THAT(take_woken(), ElementsAre(b, c, a));
}

TEST_F(EngineTest, CancelWaitAnswersOneWithOrWithoutAWait) {
  EXPECT_EQ(to_hex(run(b, request(StoreOp::cancel_wait))), "01");
  EXPECT_EQ(wait(b, {"/x", "/y"}), "");
  EXPECT_EQ(to_hex(run(b, request(StoreOp::cancel_wait))), "01");
  set("/x", "", a);
  set("/y", "", a);
  EXPECT_THAT(take_woken(), IsEmpty());
}

TEST_F(EngineTest, DisconnectFreesItsWaitsAndAllTheirMemory) {
  const auto before = engine.stored_bytes();
  EXPECT_EQ(wait(b, {"/x", "/y", "/x"}), "");
  EXPECT_EQ(wait(c, {"/y", "/z"}), "");
  EXPECT_GT(engine.stored_bytes(), before);
  engine.disconnect(b, woken);
  engine.disconnect(c, woken);
  EXPECT_EQ(engine.stored_bytes(), before);
  const auto again = engine.connect();
  EXPECT_NE(again, b);
  EXPECT_NE(again, c);
  for (const char* key : {"/x", "/y", "/z"}) set(key, "", a);
  EXPECT_THAT(take_woken(), IsEmpty()) << "the slot's next owner waits for nothing";
}

TEST_F(EngineTest, NumKeysAndDelete) {
  EXPECT_EQ(to_hex(run(a, request(StoreOp::num_keys))), "00 00 00 00 00 00 00 00");
  add("init/", 1, a);
  for (const char* key : {"/1", "/2", "/3", "/4", "/5"}) set(key, "v", a);
  run(a, request(StoreOp::queue_push, "/q", "v"));
  EXPECT_EQ(to_hex(run(a, request(StoreOp::num_keys))), "06 00 00 00 00 00 00 00") << "queues do not count";
  EXPECT_EQ(to_hex(run(a, request(StoreOp::delete_key, "/1"))), "01 00 00 00 00 00 00 00");
  EXPECT_EQ(to_hex(run(a, request(StoreOp::delete_key, "/1"))), "00 00 00 00 00 00 00 00");
}

TEST_F(EngineTest, QueuesAreFifoAndApartFromValues) {
  EXPECT_EQ(check({"/q"}), "01");
  set("/q", "value", a);
  run(a, request(StoreOp::queue_push, "/q", "1"));
  run(a, request(StoreOp::queue_push, "/q", "22"));
  EXPECT_EQ(get("/q"), "value");
  run(a, request(StoreOp::delete_key, "/q"));
  EXPECT_EQ(check({"/q"}), "00") << "a queue with items makes its key present";
  EXPECT_EQ(wait(b, {"/q"}), "00");
  EXPECT_EQ(to_hex(run(a, request(StoreOp::queue_len, "/q"))), "02 00 00 00 00 00 00 00");
  EXPECT_EQ(to_hex(run(b, request(StoreOp::queue_pop, "/q"))),
            "02 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 31");
  EXPECT_EQ(to_hex(run(b, request(StoreOp::queue_pop, "/q"))),
            "01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 32 32");
  EXPECT_EQ(to_hex(run(b, request(StoreOp::queue_pop, "/q"))), "00 00 00 00 00 00 00 00");
  EXPECT_EQ(check({"/q"}), "01");
  EXPECT_EQ(engine.stored_bytes(), 0U);
}

TEST_F(EngineTest, APushWakesOneWaiterThatCanGoOn) {
  EXPECT_EQ(wait(a, {"/q", "/other"}), "");
  EXPECT_EQ(wait(b, {"/q"}), "");
  EXPECT_EQ(wait(c, {"/q"}), "");
  run(a, request(StoreOp::queue_push, "/q", "1"));
  EXPECT_THAT(take_woken(), ElementsAre(b)) << "a still lacks a key, c must not be woken for one item";
  run(b, request(StoreOp::queue_pop, "/q"));
  set("/other", "", b);
  EXPECT_THAT(take_woken(), ElementsAre(a));
  run(b, request(StoreOp::queue_push, "/q", "2"));
  EXPECT_THAT(take_woken(), ElementsAre(c));
}

TEST_F(EngineTest, AnItemWhoseWakenedClientDiedWakesTheNext) {
  EXPECT_EQ(wait(b, {"/q"}), "");
  EXPECT_EQ(wait(c, {"/q"}), "");
  run(a, request(StoreOp::queue_push, "/q", "1"));
  EXPECT_THAT(take_woken(), ElementsAre(b));
  engine.disconnect(b, woken);
  EXPECT_THAT(take_woken(), ElementsAre(c));
}

TEST_F(EngineTest, BarrierWakesAllWhenTheLastArrives) {
  EXPECT_EQ(barrier(a, "/b", 3), "");
  EXPECT_EQ(barrier(b, "/b", 3), "");
  EXPECT_THAT(take_woken(), IsEmpty());
  EXPECT_EQ(barrier(c, "/b", 3), "00");
  EXPECT_THAT(take_woken(), ElementsAre(a, b));
  EXPECT_EQ(get("/b"), "3") << "the counter is a plain key";
  EXPECT_EQ(barrier(a, "/b", 3), "00") << "it is never reset";
  EXPECT_EQ(barrier(a, "/alone", 1), "00");
  EXPECT_EQ(barrier(a, "/odd", -1), "00");
}

TEST_F(EngineTest, BarrierThatTimedOutKeepsItsCount) {
  EXPECT_EQ(barrier(a, "/b", 2), "");
  EXPECT_EQ(to_hex(run(a, request(StoreOp::cancel_wait))), "01");
  EXPECT_EQ(barrier(b, "/b", 2), "00");
  EXPECT_THAT(take_woken(), IsEmpty());
}

TEST_F(EngineTest, AWaitForABarriersKeyEndsWhenTheKeyExists) {
  EXPECT_EQ(wait(c, {"/b"}), "");
  EXPECT_EQ(barrier(a, "/b", 2), "");
  EXPECT_THAT(take_woken(), ElementsAre(c));
  EXPECT_TRUE(engine.waiting(a));
}

TEST_F(EngineTest, MultiGetGivesEmptyForAbsentKeys) {
  set("/a", "1", a);
  auto made = request(StoreOp::multi_get);
  made.keys = {"/a", "/nope", "/a"};
  EXPECT_EQ(to_hex(run(a, made)),
            "01 00 00 00 00 00 00 00 31 00 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 31");
}

TEST_F(EngineTest, KeysAreOpaque) {
  const std::string odd("/\0//\xff", 5);
  set(odd, "v", a);
  EXPECT_EQ(get(odd), "v");
  EXPECT_EQ(get("/"), "");
  set("", "empty", a);
  EXPECT_EQ(get(""), "empty");
}

TEST_F(EngineTest, BytesAreAccountedForWhateverHappens) {
  set("/a", std::string(1000, 'x'), a);
  set("/a", "", a);
  run(a, request(StoreOp::append, "/a", "123"));
  run(a, request(StoreOp::append, "/n", "7"));
  add("/n", 100, a);
  barrier(b, "/n", 1000);
  engine.drop_wait(b);
  run(a, request(StoreOp::queue_push, "/q", "12345"));
  run(a, request(StoreOp::queue_pop, "/q"));
  run(a, request(StoreOp::delete_key, "/a"));
  run(a, request(StoreOp::delete_key, "/n"));
  EXPECT_EQ(engine.stored_bytes(), 0U);
}

TEST(StoreEngine, StoredBytesMaxHoldsForEveryWayOfGrowing) {
  StoreLimits limits;
  limits.stored_bytes_max = 4096;
  using enum StoreOp;
  for (const auto op : {set, append, add, multi_set, queue_push, wait, barrier, compare_set}) {
    StoreEngine engine(limits);
    StoreWoken woken;
    std::optional<std::string> refusal;
    int rounds = 0;
    for (; !refusal && rounds < 1000; ++rounds) {
      const auto id = engine.connect();
      const auto key = "/" + std::to_string(rounds);
      StoreRequest request;
      request.op = op;
      request.key = key;
      request.desired = "d";
      request.number = 5;
      request.keys = {key};
      request.values = {"v"};
      StoreOutput reply;
      refusal = engine.handle(id, request, reply, woken);
    }
    ASSERT_TRUE(refusal) << name_of(op);
    EXPECT_THAT(*refusal, HasSubstr("stored_bytes_max")) << name_of(op);
    EXPECT_LE(engine.stored_bytes(), limits.stored_bytes_max) << name_of(op);
    EXPECT_GT(rounds, 10) << name_of(op);
  }
}

/// For std::string, its heap block; what the sanitizers put around it is not counted by malloc.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool malloc_counts = false;
#else
constexpr bool malloc_counts = true;
#endif

TEST(StoreEngine, QueuesAreCountedAboutAsTheMemoryThatTheyTake) {
  if (!malloc_counts) GTEST_SKIP() << "a sanitizer's malloc does not count";
  struct Shape {
    int queues, items;
    std::size_t key_bytes, item_bytes;
  };
  for (const auto& shape :
       {Shape{50'000, 1, 7, 1}, {10, 5'000, 7, 1}, {5'000, 1, 60, 300}, {1, 20'000, 20, 40}}) {
    StoreEngine engine;
    StoreWoken woken;
    StoreOutput reply;
    const auto id = engine.connect();
    const std::string item(shape.item_bytes, 'v');
    const auto before = ::mallinfo2().uordblks;
    for (int queue = 0; queue < shape.queues; ++queue) {
      auto key = std::to_string(queue);
      key.insert(0, shape.key_bytes - std::min(shape.key_bytes, key.size()), '/');
      StoreRequest request;
      request.op = StoreOp::queue_push;
      request.key = key;
      request.value = item;
      for (int i = 0; i < shape.items; ++i) EXPECT_FALSE(engine.handle(id, request, reply, woken));
    }
    const auto taken = static_cast<double>(::mallinfo2().uordblks - before);
    const auto counted = static_cast<double>(engine.stored_bytes());
    EXPECT_LT(taken, 1.3 * counted) << shape.queues << " queues of " << shape.items;
    EXPECT_GT(taken, counted / 1.3) << shape.queues << " queues of " << shape.items;
  }
}

TEST(StoreEngine, ValuesAndRepliesHaveLimitsToo) {
  StoreLimits limits;
  limits.value_bytes_max = 100;
  limits.reply_bytes_max = 200;
  StoreEngine engine(limits);
  const auto id = engine.connect();
  StoreWoken woken;
  StoreOutput reply;
  const std::string half(60, 'x');
  StoreRequest request;
  request.op = StoreOp::append;
  request.key = "/k";
  request.value = half;
  EXPECT_FALSE(engine.handle(id, request, reply, woken));
  EXPECT_THAT(engine.handle(id, request, reply, woken).value(), HasSubstr("value_bytes_max"));
  request.op = StoreOp::multi_get;
  request.keys = {"/k", "/k", "/k", "/k"};
  EXPECT_THAT(engine.handle(id, request, reply, woken).value(), HasSubstr("reply_bytes_max"));
  EXPECT_TRUE(reply.empty());
}

TEST(StoreEngine, AValueThatAnAnswerStillHoldsCountsAsStored) {
  StoreLimits limits;
  limits.stored_bytes_max = 1UL << 20;
  StoreEngine engine(limits);
  const auto id = engine.connect();
  StoreWoken woken;
  const std::string long_value(400'000, 'x');
  StoreRequest set, get;
  set.op = StoreOp::set;
  get.op = StoreOp::get;
  set.key = get.key = "/k";
  set.value = long_value;
  StoreOutput reply, none;
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(engine.handle(id, set, none, woken)) << i;
    EXPECT_FALSE(engine.handle(id, get, reply, woken)) << i;
  }
  EXPECT_GT(engine.stored_bytes(), 800'000U);
  EXPECT_THAT(engine.handle(id, set, none, woken).value(), HasSubstr("stored_bytes_max"));
  reply.sent(reply.unsent_bytes());
  EXPECT_LT(engine.stored_bytes(), 401'000U);
  EXPECT_FALSE(engine.handle(id, set, none, woken));
}

TEST_F(EngineTest, DiagnosisSaysWhoWaitsForWhatAndWhoWroteWhat) {
  auto ping = request(StoreOp::ping);
  ping.number = 4711 | ping_nonce_flag;
  run(b, ping);
  EXPECT_FALSE(engine.diagnosis().joined);
  add("init/", 1, a);
  add("init/", 1, b);
  add("init/", 0, c);
  set("/default_pg/0//cpu//0/1", "address", b);
  set("/default_pg/0//cpu//0/0", "address", b);
  EXPECT_EQ(wait(a, {"/default_pg/0//cpu//0/2", "/default_pg/0//cpu//0/1"}), "");
  const auto diagnosis = engine.diagnosis();
  EXPECT_EQ(diagnosis.joined, 2);
  ASSERT_EQ(diagnosis.connections.size(), 3U);
  EXPECT_EQ(diagnosis.connections[0].id, a);
  EXPECT_TRUE(diagnosis.connections[0].joined);
  EXPECT_THAT(diagnosis.connections[0].waits_for, ElementsAre("/default_pg/0//cpu//0/2"));
  EXPECT_EQ(diagnosis.connections[1].pid, 4711U);
  EXPECT_THAT(diagnosis.connections[1].keys_set,
              ElementsAre("/default_pg/0//cpu//0/0", "/default_pg/0//cpu//0/1"));
  EXPECT_FALSE(diagnosis.connections[2].joined) << "a look at the counter is no arrival";
  engine.disconnect(b, woken);
  EXPECT_EQ(engine.diagnosis().connections.size(), 2U);
}

}  // namespace
}  // namespace muster::rendezvous
