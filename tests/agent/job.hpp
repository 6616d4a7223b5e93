// A whole job on one node: a real agent with real workers, the rendezvous in-process, stores that only count.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "agent/agent.hpp"
#include "agent/process/proc_files.hpp"
#include "rendezvous/client/in_process_link.hpp"
#include "tests/agent/process/processes.hpp"

namespace muster::agent {

using ::testing::HasSubstr;

class CountedStores : public StoreHost {
 public:
  Result<std::uint16_t> open(int number) override {
    if (fails) return errno_error("127.0.0.1", EMFILE);
    opened.push_back(number);
    listening.insert(number);
    return static_cast<std::uint16_t>(4000 + number);
  }
  void begin_round(int number, LedRound round) override {
    EXPECT_TRUE(listening.contains(number));
    began[number] = std::move(round);
  }
  void close(int number) override { EXPECT_EQ(listening.erase(number), 1u); }
  bool used(int) const override { return was_used; }

  std::vector<int> opened;
  std::set<int> listening;
  std::map<int, LedRound> began;
  bool was_used = true;
  bool fails = false;
};

class AgentTest : public Processes {
 protected:
  AgentTest() {
    policy.startup_window = 0s;
    options.supervisor.offer.node = "n1";
    options.supervisor.offer.host = "host1";
    options.supervisor.offer.address = "127.0.0.1";
    options.supervisor.offer.local_workers = 2;
    options.workers.run_id = "job";
    options.workers.executable = child_program;
    options.workers.environment = no_sanitizer_handlers;
    options.workers.environment.push_back("PATH=/usr/bin:/bin");
    options.workers.log_folder = path("logs");
    options.say = [this](const std::string& sentence) { said += sentence + "\n"; };
  }
  ~AgentTest() override {
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
    ::signal(SIGPIPE, SIG_DFL);
  }

  /// The same steps for each worker; `while_running` is asked again and again until the job is over.
  AgentResult run(
      std::vector<std::string> arguments, const std::function<void()>& while_running = [] {}) {
    options.workers.arguments = std::move(arguments);
    auto guard = Guard::start();
    boost::asio::io_context own_io{1};
    rendezvous::InProcessLink link(own_io.get_executor(), "job", policy);
    Agent agent(own_io, options, link, stores, *guard);
    std::optional<AgentResult> result;
    agent.start([&](AgentResult ended) { result = std::move(ended); });
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    while (!result && std::chrono::steady_clock::now() < deadline) {
      own_io.run_one_for(5ms);
      while_running();
    }
    EXPECT_TRUE(result) << agent.reason();
    EXPECT_TRUE(stores.listening.empty());
    if (alone) {
      EXPECT_EQ(own_children(), std::vector<pid_t>{guard->pid()}) << "somebody is left over";
    }
    return result.value_or(AgentResult{});
  }

  static std::string sentence_of(const WorkerRecord& record) {
    return record.end ? record.end->sentence() : "no end";
  }

  rendezvous::JobPolicy policy;
  AgentOptions options;
  CountedStores stores;
  bool alone = true;  ///< the test has no other children
  std::string said;
};

}  // namespace muster::agent
