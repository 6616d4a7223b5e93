// Our store server under PyTorch's own client, and our client at PyTorch's own server. Debian's
// PyTorch 1.13.1 always; another one as well when MUSTER_TORCH_PYTHON names its interpreter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>

#include "base/endpoint.hpp"
#include "base/exit_cause.hpp"
#include "rendezvous/store/client.hpp"
#include "tests/rendezvous/store/running_store.hpp"

namespace muster::rendezvous {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

std::vector<std::string> pythons() {
  std::vector<std::string> found{"/usr/bin/python3"};
  if (const char* newer = std::getenv("MUSTER_TORCH_PYTHON")) found.emplace_back(newer);
  return found;
}

/// A Python script with pipes at both ends; its standard error is the test's.
class Script {
 public:
  Script(const std::string& python, const std::string& name, const std::string& argument) {
    const auto path = std::string(MUSTER_SOURCE_DIR) + "/tests/interop/" + name;
    int in[2];
    int out[2];
    EXPECT_EQ(::pipe2(in, O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(out, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    const char* argv[] = {python.c_str(), path.c_str(), argument.c_str(), nullptr};
    EXPECT_EQ(::posix_spawn(&pid_, python.c_str(), &actions, nullptr, const_cast<char**>(argv), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    UniqueFd(in[0]).reset();
    UniqueFd(out[1]).reset();
    in_ = UniqueFd(in[1]);
    out_ = UniqueFd(out[0]);
  }
  ~Script() { finish(); }

  std::string read_line() {
    std::string line;
    for (char c; ::read(out_.get(), &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }
  /// Ends its input and waits for it.
  ExitCause finish() {
    in_.reset();
    if (pid_ > 0) {
      int status = 0;
      EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
      pid_ = 0;
      cause_ = exit_cause_from_wait_status(status);
    }
    return cause_;
  }

 private:
  UniqueFd in_;
  UniqueFd out_;
  pid_t pid_ = 0;
  ExitCause cause_ = ExitCause::exited(0);
};

class StoreInterop : public testing::TestWithParam<std::string> {};

TEST_P(StoreInterop, PyTorchsClientFindsNothingMissingInOurServer) {
  RunningStore server({}, "");
  Script script(GetParam(), "store_client.py", std::to_string(server.port()));
  std::cout << script.read_line() << std::endl;
  EXPECT_EQ(script.finish(), ExitCause::exited(0));
  EXPECT_TRUE(server.notices().empty()) << server.notices().at(0);
  server.await("all are gone", [](auto& c) { return c.connections == 0; });
}

TEST_P(StoreInterop, OurClientWorksAtPyTorchsServer) {
  Script script(GetParam(), "store_server.py", "");
  const auto port = parse_integer(script.read_line(), 1, 65535);
  ASSERT_TRUE(port);
  StoreClientOptions options;
  options.connect_timeout = patience;
  options.timeout = patience;
  const Endpoint endpoint{"127.0.0.1", static_cast<std::uint16_t>(*port)};
  StoreClient store(endpoint, options);
  EXPECT_EQ(store.get("from_python"), "hello");
  EXPECT_GE(store.announce_worker(), 1);
  store.set("k", "v");
  EXPECT_EQ(store.get("k"), "v");
  EXPECT_EQ(store.add("n", 5), 5);
  EXPECT_EQ(store.add("n", -7), -2);
  EXPECT_EQ(store.get("n"), "-2");
  EXPECT_EQ(store.compare_set("c", "q", "x"), "q");
  EXPECT_EQ(store.compare_set("c", "", "x"), "x");
  EXPECT_EQ(store.compare_set("c", "q", "y"), "x");
  EXPECT_EQ(store.compare_set("c", "x", "y"), "y");
  EXPECT_TRUE(store.check({"k", "c"}));
  EXPECT_FALSE(store.check({"k", "nope"}));
  EXPECT_TRUE(store.delete_key("c"));
  EXPECT_FALSE(store.delete_key("c"));
  EXPECT_THROW(store.wait({"nope"}, 100ms), StoreTimeout);
  StoreClient other(endpoint, options);
  other.set("nope", "late");
  EXPECT_EQ(store.get("nope"), "late");
  store.multi_set({{"m1", "1"}, {"m2", "22"}});
  EXPECT_THAT(store.multi_get({"m2", "m1"}), ElementsAre("22", "1"));
  std::thread waiting([&] { EXPECT_EQ(other.get("go"), "now"); });
  store.set("go", "now");
  waiting.join();
  EXPECT_EQ(script.finish(), ExitCause::exited(0));
}

TEST_P(StoreInterop, NewerCallsAtPyTorchsServer) {
  Script script(GetParam(), "store_server.py", "");
  const auto port = parse_integer(script.read_line(), 1, 65535);
  ASSERT_TRUE(port);
  StoreClientOptions options;
  options.timeout = patience;
  const Endpoint endpoint{"127.0.0.1", static_cast<std::uint16_t>(*port)};
  StoreClient store(endpoint, options);
  if (store.dialect() == StoreDialect::a) {
    EXPECT_THROW(store.append("a", "x"), StoreError);
    EXPECT_THROW(store.queue_push("q", "1"), StoreError);
    store.barrier("b", 1);
    return;
  }
  EXPECT_TRUE(store.ping());
  store.append("a", "x");
  store.append("a", "yz");
  EXPECT_EQ(store.get("a"), "xyz");
  store.queue_push("q", "1");
  store.queue_push("q", "22");
  EXPECT_EQ(store.queue_len("q"), 2);
  EXPECT_EQ(store.queue_pop("q"), "1");
  EXPECT_EQ(store.queue_pop_wait("q"), "22");
  EXPECT_EQ(store.queue_pop("q"), std::nullopt);
  store.prefixed("p").set("k", "v");
  EXPECT_THAT(store.prefixed("p").list_keys(), ElementsAre("k"));
  std::thread other([&] { StoreClient(endpoint, options).barrier("b", 2); });
  store.barrier("b", 2);
  other.join();
  EXPECT_THROW(store.barrier("alone", 2, 50ms), StoreTimeout);
  EXPECT_EQ(store.get("a"), "xyz") << "in step after the cancelled barrier";
}

INSTANTIATE_TEST_SUITE_P(Python, StoreInterop, testing::ValuesIn(pythons()),
                         [](const auto& of) { return of.index == 0 ? "Debian" : "Newer"; });

}  // namespace
}  // namespace muster::rendezvous
