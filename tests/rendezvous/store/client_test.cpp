#include "rendezvous/store/client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>

#include "tests/rendezvous/store/running_store.hpp"

namespace muster::rendezvous {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

template <class Exception, class F>
std::string thrown(F call) {
  try {
    call();
  } catch (const Exception& e) {
    return e.what();
  }
  return "nothing was thrown";
}

StoreClientOptions speaking(StoreDialect dialect) {
  StoreClientOptions options;
  options.connect_timeout = patience;
  options.timeout = patience;
  options.dialect = dialect;
  return options;
}

/// Every call that both dialects have.
class StoreClientIn : public testing::TestWithParam<StoreDialect> {
 protected:
  RunningStore server;
  StoreClient store{server.endpoint(), speaking(GetParam())};
};

TEST_P(StoreClientIn, PlainCalls) {
  EXPECT_EQ(store.dialect(), GetParam());
  EXPECT_EQ(store.announce_worker(), 1);
  store.set("k", "v");
  EXPECT_EQ(store.get("k"), "v");
  store.set("empty", "");
  EXPECT_EQ(store.get("empty"), "");
  EXPECT_EQ(store.add("n", 5), 5);
  EXPECT_EQ(store.add("n", -7), -2);
  EXPECT_EQ(store.get("n"), "-2");
  EXPECT_EQ(store.compare_set("c", "q", "x"), "q");
  EXPECT_EQ(store.compare_set("c", "", "x"), "x");
  EXPECT_EQ(store.compare_set("c", "q", "y"), "x");
  EXPECT_EQ(store.compare_set("c", "x", "y"), "y");
  EXPECT_TRUE(store.check({"k", "c"}));
  EXPECT_FALSE(store.check({"k", "nope"}));
  EXPECT_EQ(store.num_keys(), 5);
  EXPECT_TRUE(store.delete_key("c"));
  EXPECT_FALSE(store.delete_key("c"));
  store.multi_set({{"m1", "1"}, {"m2", "22"}});
  EXPECT_THAT(store.multi_get({"m2", "m1"}), ElementsAre("22", "1"));
  const std::string big(3UL << 20, 'b');
  store.set("big", big);
  EXPECT_TRUE(store.get("big") == big);
}

TEST_P(StoreClientIn, WaitTimesOutWithTimeAndKeysAndTheClientGoesOn) {
  EXPECT_EQ(thrown<StoreTimeout>([&] { store.wait({"the_key"}, 100ms); }),
            "wait timeout after 100ms, keys: /the_key");
  EXPECT_EQ(thrown<StoreTimeout>([&] {
              store.prefixed("p").wait({"a", "b"}, 10ms);
            }),
            "wait timeout after 10ms, keys: /p/a, /p/b");
  EXPECT_EQ(thrown<StoreTimeout>([&] { store.get("late", 0ms); }), "wait timeout after 0ms, keys: /late");
  StoreClient(server.endpoint()).set("the_key", "now");
  EXPECT_EQ(store.get("the_key"), "now");
  EXPECT_EQ(store.num_keys(), 1);
}

TEST_P(StoreClientIn, GetWaitsForTheKey) {
  std::thread setter([&] {
    StoreClient other(server.endpoint(), speaking(GetParam()));
    server.await("the wait is there", [](auto& c) { return c.connections >= 2; });
    other.set("later", "there");
  });
  EXPECT_EQ(store.get("later"), "there");
  setter.join();
}

TEST_P(StoreClientIn, PrefixesNestAsPyTorchWritesThem) {
  auto group = store.prefixed("default_pg").prefixed("0");
  group.set("1", "address");
  EXPECT_EQ(store.get("default_pg/0/1"), "address");
  store.prefixed("/worker/attempt_3").set("k", "v");
  RawClient raw(server.port());
  raw.send_hex("04 01 00 00 00 00 00 00 00 13 00 00 00 00 00 00 00");
  raw.send("//worker/attempt_3/");
  raw.expect_hex("01");
  raw.send_hex("04 01 00 00 00 00 00 00 00 14 00 00 00 00 00 00 00");
  raw.send("//worker/attempt_3/k");
  raw.expect_hex("00");
}

TEST_P(StoreClientIn, BarrierHoldsUntilAllAreThere) {
  std::atomic<int> through = 0;
  std::vector<std::thread> others;
  for (int i = 0; i < 3; ++i)
    others.emplace_back([&] {
      StoreClient(server.endpoint(), speaking(GetParam())).barrier("b", 4);
      ++through;
    });
  server.await("three are there", [](auto& c) { return c.keys >= 1 && c.connections == 4; });
  EXPECT_EQ(through, 0);
  store.barrier("b", 4);
  for (auto& other : others) other.join();
  EXPECT_EQ(through, 3);
  EXPECT_THAT(thrown<StoreTimeout>([&] { store.barrier("alone", 2, 20ms); }),
              HasSubstr("barrier timeout after 20ms"));
}

TEST_P(StoreClientIn, ManyThreadsShareOneClient) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      auto mine = store.prefixed(std::to_string(i));
      for (int j = 0; j < 100; ++j) {
        mine.set("k", std::to_string(j));
        EXPECT_EQ(mine.get("k"), std::to_string(j));
        store.add("sum", 1);
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(store.get("sum"), "400");
}

INSTANTIATE_TEST_SUITE_P(Dialect, StoreClientIn, testing::Values(StoreDialect::c, StoreDialect::a),
                         [](const auto& of) { return of.param == StoreDialect::c ? "C" : "A"; });

TEST(StoreClient, NewerCalls) {
  RunningStore server;
  StoreClient store(server.endpoint());
  EXPECT_EQ(store.dialect(), StoreDialect::c);
  EXPECT_TRUE(store.ping());
  store.append("a", "x");
  store.append("a", "yz");
  EXPECT_EQ(store.get("a"), "xyz");
  EXPECT_EQ(store.queue_pop("q"), std::nullopt);
  store.queue_push("q", "1");
  store.queue_push("q", "");
  EXPECT_EQ(store.queue_len("q"), 2);
  EXPECT_EQ(store.queue_pop("q"), "1");
  EXPECT_EQ(store.queue_pop_wait("q"), "");
  EXPECT_THAT(thrown<StoreTimeout>([&] { store.queue_pop_wait("q", 20ms); }), HasSubstr("keys: /q"));
  store.set("not_a_queue", "v");
  EXPECT_THAT(thrown<StoreTimeout>([&] { store.queue_pop_wait("not_a_queue", 20ms); }),
              HasSubstr("queue timeout after 20ms"));
  store.announce_worker();
  store.prefixed("p").set("k", "v");
  EXPECT_THAT(store.list_keys(), ElementsAre("a", "not_a_queue", "p/k"));
  EXPECT_THAT(store.prefixed("p").list_keys(), ElementsAre("k"));
}

TEST(StoreClient, DialectAHasNoNewerCalls) {
  RunningStore server;
  StoreClient store(server.endpoint(), speaking(StoreDialect::a));
  EXPECT_FALSE(store.ping());
  EXPECT_THAT(thrown<StoreError>([&] { store.queue_push("q", "1"); }),
              HasSubstr("QUEUE_PUSH: this server is of PyTorch 2.0 or older and has no such request"));
  EXPECT_THAT(thrown<StoreError>([&] { store.append("k", "v"); }),
              HasSubstr("APPEND: this server is of PyTorch 2.0"));
  store.set("k", "v");
  EXPECT_EQ(store.get("k"), "v");
}

TEST(StoreClient, TheServerLearnsTheProcessId) {
  RunningStore server;
  StoreClient store(server.endpoint());
  const auto diagnosis = server.ask([](StoreServer& s) { return s.diagnosis(); });
  EXPECT_EQ(diagnosis.connections.at(0).pid, static_cast<std::uint32_t>(::getpid()));
}

TEST(StoreClient, WaitsForAServerThatComesLate) {
  std::uint16_t port = 0;
  {
    RunningStore brief;
    port = brief.port();
  }
  std::optional<StoreClient> client;
  std::thread connecting([&] {
    client.emplace(Endpoint{"localhost", port}, speaking(StoreDialect::undecided));
  });
  RunningStore server({}, "127.0.0.1", port);
  connecting.join();
  client->set("k", "v");
  EXPECT_EQ(client->get("k"), "v");
}

TEST(StoreClient, SaysWhyNoServerAnswered) {
  std::uint16_t port = 0;
  {
    RunningStore brief;
    port = brief.port();
  }
  StoreClientOptions options;
  options.connect_timeout = 50ms;
  EXPECT_EQ(thrown<StoreTimeout>([&] {
              StoreClient({"127.0.0.1", port}, options);
            }),
            "worker store 127.0.0.1:" + std::to_string(port) +
                ": no store answered within 50ms; the last try: Connection refused (ECONNREFUSED)");
}

TEST(StoreClient, ALostServerIsAnErrorAndTheNextCallConnectsAgain) {
  auto server = std::make_unique<RunningStore>();
  const auto port = server->port();
  StoreClient store(server->endpoint(), speaking(StoreDialect::undecided));
  store.set("k", "v");
  EXPECT_EQ(store.num_keys(), 1);
  server.reset();
  EXPECT_THAT(thrown<StoreError>([&] { store.num_keys(); }),
              HasSubstr("worker store 127.0.0.1:" + std::to_string(port) + ": GETNUMKEYS: "));
  server = std::make_unique<RunningStore>(StoreLimits{}, "127.0.0.1", port);
  EXPECT_EQ(store.num_keys(), 0);
}

/// Plays an old or a broken server: `answer` gets what came on one connection so far and says what to send
/// ("" for nothing yet), or nothing to close it.
class ScriptedServer {
 public:
  using Answer = std::function<std::optional<std::string>(const std::string&)>;
  explicit ScriptedServer(Answer answer)
      : listener_(open_listener(io_.get_executor(), "127.0.0.1", 0).value()),
        thread_([this, answer = std::move(answer)] { run(answer); }) {}
  ~ScriptedServer() {
    stop_ = true;
    (void)StoreSocket::connect(endpoint(), Clock::now() + patience);  // ends accept()
    thread_.join();
  }
  Endpoint endpoint() const { return {"127.0.0.1", listener_.local_endpoint().port()}; }

 private:
  void run(const Answer& answer) {
    listener_.native_non_blocking(false);
    while (true) {
      UniqueFd fd(::accept4(listener_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC));
      if (stop_) return;
      std::string came;
      char chunk[4096];
      for (ssize_t count; (count = ::recv(fd.get(), chunk, sizeof chunk, 0)) > 0;) {
        came.append(chunk, static_cast<std::size_t>(count));
        const auto reply = answer(came);
        if (!reply) break;
        if (::send(fd.get(), reply->data(), reply->size(), MSG_NOSIGNAL) < 0) break;
      }
    }
  }

  boost::asio::io_context io_;
  boost::asio::ip::tcp::acceptor listener_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

TEST(StoreClient, SpeaksDialectCWithoutPingToServersOf2_1To2_4) {
  const auto greeting = from_hex("00 ce f7 85 3c 0c 0c 0c 0c");
  ScriptedServer server([&](const std::string& came) -> std::optional<std::string> {
    if (came.size() > 5 && came[5] == 0x0d) return std::nullopt;
    if (came == greeting) return from_hex("01 01 01 01");
    if (came == greeting + from_hex("07")) return from_hex("09 00 00 00 00 00 00 00");
    return "";
  });
  StoreClient store(server.endpoint(), speaking(StoreDialect::undecided));
  EXPECT_EQ(store.dialect(), StoreDialect::c);
  EXPECT_FALSE(store.ping());
  EXPECT_EQ(store.num_keys(), 9);
}

TEST(StoreClient, AnAnswerThatCrossesTheCancellationCounts) {
  const auto greeting = 10U;
  ScriptedServer server([&](const std::string& came) -> std::optional<std::string> {
    if (came.size() == greeting) return came.substr(6);
    if (came.ends_with('\x0c')) return from_hex("00 01");  // the key came just before CANCEL_WAIT
    return "";
  });
  StoreClient store(server.endpoint(), speaking(StoreDialect::c));
  EXPECT_NO_THROW(store.wait({"k"}, 20ms));
  EXPECT_NO_THROW(store.wait({"k"}, 20ms)) << "and the stream is in step";
}

TEST(StoreClient, AServerThatAcceptsAndIsSilentIsATimeoutNotAHang) {
  ScriptedServer server([](const std::string&) { return ""; });
  StoreClientOptions options;
  options.connect_timeout = 100ms;
  EXPECT_THAT(thrown<StoreTimeout>([&] { StoreClient(server.endpoint(), options); }),
              HasSubstr("it accepts but does not answer"));
}

TEST(StoreClient, ReplyThatNeverComesIsATimeoutAndAnAbsurdOneAnError) {
  ScriptedServer server([&](const std::string& came) -> std::optional<std::string> {
    if (came.size() == 10) return came.substr(6);
    if (came.ends_with("/absurd")) return std::string(8, '\xff');
    return "";
  });
  auto options = speaking(StoreDialect::c);
  options.timeout = 50ms;
  StoreClient store(server.endpoint(), options);
  EXPECT_THAT(thrown<StoreTimeout>([&] { store.num_keys(); }), HasSubstr("GETNUMKEYS: no reply within 50ms"));
  EXPECT_THAT(thrown<StoreError>([&] { store.compare_set("k", "", "/absurd"); }), HasSubstr("announced"));
}

}  // namespace
}  // namespace muster::rendezvous
