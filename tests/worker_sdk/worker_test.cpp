#include "muster/worker/worker.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "base/unique_fd.hpp"
#include "tests/worker_sdk/temporary_folder.hpp"
#include "worker_sdk/src/local_address.hpp"
#include "worker_sdk/src/store_host.hpp"

namespace muster::worker {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

constexpr auto patience = 100s;

/// A rank_program, its output and its error file.
class Rank {
 public:
  Rank(const std::string& mode, int rank, int size, std::uint16_t port, bool agent_store,
       const std::filesystem::path& folder, const std::vector<std::string>& more = {},
       const std::vector<std::string>& arguments = {})
      : error_file_(folder / ("error-" + std::to_string(rank) + ".json")),
        stderr_file_(folder / ("stderr-" + std::to_string(rank))) {
    std::vector<std::string> environment{
        "RANK=" + std::to_string(rank),
        "WORLD_SIZE=" + std::to_string(size),
        "MASTER_ADDR=127.0.0.1",
        "MASTER_PORT=" + std::to_string(port),
        std::string("TORCHELASTIC_USE_AGENT_STORE=") + (agent_store ? "True" : "False"),
        "TORCHELASTIC_ERROR_FILE=" + error_file_.string()};
    environment.insert(environment.end(), more.begin(), more.end());
    for (const char* name : {"ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"})
      if (const char* value = ::getenv(name)) environment.push_back(std::string(name) + "=" + value);
    std::vector<std::string> command{std::string(MUSTER_BIN_DIR) + "/worker_sdk_rank", mode};
    command.insert(command.end(), arguments.begin(), arguments.end());
    spawn(std::move(command), environment);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;
  ~Rank() {
    if (pid_ > 0 && ::kill(pid_, SIGKILL) == 0) ::waitpid(pid_, nullptr, 0);
  }

  pid_t pid() const { return pid_; }

  /// The next line of its standard output; empty when it ended or took too long.
  std::string line() {
    std::string text;
    char byte = 0;
    const auto deadline = steady_clock::now() + patience;
    while (true) {
      pollfd waiting{output_.get(), POLLIN, 0};
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - steady_clock::now());
      if (left.count() <= 0 || ::poll(&waiting, 1, static_cast<int>(left.count())) <= 0) return "";
      if (::read(output_.get(), &byte, 1) != 1) return "";
      if (byte == '\n') return text;
      text += byte;
    }
  }

  /// Its exit code, 128 + n for signal n, -1 if it does not end in time.
  int exit_code() {
    while (line() != "") continue;  // the output ends with the process
    pollfd waiting{output_.get(), POLLIN, 0};
    if (::poll(&waiting, 1, 0) != 1) return -1;
    int status = 0;
    if (::waitpid(std::exchange(pid_, 0), &status, 0) < 0) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  std::string errors() const { return test::read_file(stderr_file_); }
  std::string error_message() const {
    const auto json = nlohmann::json::parse(test::read_file(error_file_), nullptr, false);
    return json.is_discarded() ? "" : json.at("message").at("message").get<std::string>();
  }
  const std::filesystem::path& error_file() const { return error_file_; }

 private:
  void spawn(std::vector<std::string> arguments, std::vector<std::string> environment) {
    int pipe[2];
    if (::pipe2(pipe, O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
    output_.reset(pipe[0]);
    const UniqueFd write_end(pipe[1]);
    const auto pointers = [](std::vector<std::string>& texts) {
      std::vector<char*> result;
      for (auto& text : texts) result.push_back(text.data());
      result.push_back(nullptr);
      return result;
    };
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);
    ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, stderr_file_.c_str(), O_WRONLY | O_CREAT,
                                       0600);
    const int result = ::posix_spawn(&pid_, arguments[0].c_str(), &actions, nullptr,
                                     pointers(arguments).data(), pointers(environment).data());
    ::posix_spawn_file_actions_destroy(&actions);
    if (result != 0) throw std::runtime_error("cannot start " + arguments[0]);
  }

  std::filesystem::path error_file_;
  std::filesystem::path stderr_file_;
  UniqueFd output_;
  pid_t pid_ = 0;
};

/// A port that stays ours: bound, so that nobody else gets it, but not listening, so that a rank still can.
class ReservedPort {
 public:
  ReservedPort() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    if (::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
        ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
      throw std::runtime_error("no free port");
    port_ = ntohs(address.sin_port);
  }
  std::uint16_t port() const { return port_; }

 private:
  UniqueFd fd_;
  std::uint16_t port_ = 0;
};

class Job {
 public:
  /// With the store served here, as an agent does.
  Job(const std::string& mode, int size) : store_(std::make_unique<StoreHost>("127.0.0.1", 0)) {
    start(mode, size, store_->port(), true);
  }
  /// With the store in rank 0.
  Job(const std::string& mode, int size, std::uint16_t port) { start(mode, size, port, false); }

  /// On nodes with `ranks_per_node` ranks each; every rank has `more` in its environment.
  Job(const std::string& mode, int size, int ranks_per_node, const std::vector<std::string>& more)
      : store_(std::make_unique<StoreHost>("127.0.0.1", 0)) {
    for (int rank = 0; rank < size; ++rank) {
      auto environment = more;
      environment.push_back("GROUP_RANK=" + std::to_string(rank / ranks_per_node));
      environment.push_back("LOCAL_RANK=" + std::to_string(rank % ranks_per_node));
      ranks_.push_back(
          std::make_unique<Rank>(mode, rank, size, store_->port(), true, folder_.path(), environment));
    }
  }

  /// With as many ranks as there are lists of further arguments.
  Job(const std::string& mode, const std::vector<std::vector<std::string>>& arguments)
      : store_(std::make_unique<StoreHost>("127.0.0.1", 0)) {
    const auto size = static_cast<int>(arguments.size());
    for (int rank = 0; rank < size; ++rank)
      ranks_.push_back(std::make_unique<Rank>(mode, rank, size, store_->port(), true, folder_.path(),
                                              std::vector<std::string>{},
                                              arguments[static_cast<std::size_t>(rank)]));
  }

  Rank& operator[](int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }

 private:
  void start(const std::string& mode, int size, std::uint16_t port, bool agent_store) {
    for (int rank = 0; rank < size; ++rank)
      ranks_.push_back(std::make_unique<Rank>(mode, rank, size, port, agent_store, folder_.path()));
  }

  test::TemporaryFolder folder_;
  std::unique_ptr<StoreHost> store_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

TEST(Worker, RanksMeetOnTheAgentsStore) {
  Job job("sum", 3);
  for (int rank : {0, 1, 2}) {
    EXPECT_EQ(job[rank].line(), "sum 6");
    EXPECT_EQ(job[rank].exit_code(), 0) << job[rank].errors();
  }
}

TEST(Worker, RankZeroServesTheStoreWhereTheLauncherDoesNot) {
  const ReservedPort port;
  for (int round = 0; round < 2; ++round) {
    Job job("sum", 3, port.port());
    for (int rank : {0, 1, 2}) {
      EXPECT_EQ(job[rank].line(), "sum 6");
      EXPECT_EQ(job[rank].exit_code(), 0) << job[rank].errors();
    }
  }
}

TEST(Worker, RankZeroDoesNotTakeTheStoreAwayBeforeAllHaveMet) {
  const ReservedPort port;
  Job job("leave", 4, port.port());
  for (int rank : {0, 1, 2, 3}) EXPECT_EQ(job[rank].exit_code(), 0) << job[rank].errors();
}

TEST(Worker, AWorldOfOneNeedsNoNetwork) {
  const test::TemporaryFolder folder;
  Rank rank("sum", 0, 1, 1, false, folder.path());
  EXPECT_EQ(rank.line(), "sum 1");
  EXPECT_EQ(rank.exit_code(), 0) << rank.errors();
}

TEST(Worker, AKilledPeerFailsTheOthersWithinSecondsAlsoInTheMiddleOfATransfer) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    Job job("loop", 3);
    for (int rank : {0, 1, 2}) ASSERT_EQ(job[rank].line(), "looping 0") << job[rank].errors();
    ASSERT_EQ(::kill(job[1].pid(), SIGKILL), 0);
    const auto start = steady_clock::now();
    for (int rank : {0, 2}) {
      EXPECT_EQ(job[rank].exit_code(), 1) << job[rank].errors();
      EXPECT_THAT(job[rank].errors(),
                  AllOf(HasSubstr("all_reduce #"), HasSubstr("lost the connection to rank 1")));
      EXPECT_THAT(job[rank].error_message(), HasSubstr("CollectiveError: all_reduce #"));
    }
    EXPECT_LT(steady_clock::now() - start, 60s) << "the collective's own time-out is 300 s";
  }
}

TEST(Worker, ARankThatDoesNotCallTheCollectiveIsNamed) {
  Job job("absent", 2);
  EXPECT_EQ(job[0].exit_code(), 1) << job[0].errors();
  EXPECT_EQ(job[0].errors(),
            "rank 0: all_reduce #1 (sum, 1000 x F64) timed out after 1 s: rank 1 has not arrived\n");
}

TEST(Worker, GroupsOfANodeAndAcrossNodes) {
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, std::vector<std::string>{"MUSTER_DEBUG=collectives"}}) {
    Job job("groups", 4, 2, more);
    const std::vector<std::string> on_node{"node 1", "node 1", "node 5", "node 5"};
    const std::vector<std::string> across{"across 2", "across 4", "across 2", "across 4"};
    for (int rank : {0, 1, 2, 3}) {
      EXPECT_EQ(job[rank].line(), on_node[static_cast<std::size_t>(rank)]);
      EXPECT_EQ(job[rank].line(), across[static_cast<std::size_t>(rank)]);
      EXPECT_EQ(job[rank].exit_code(), 0) << job[rank].errors();
    }
  }
}

TEST(Worker, SubGroupsOfAnyNameKeepApart) {
  const std::vector<std::string> groups{"a=0,1", "a/check=0,1", "node 0=0,1"};
  Job job("group", {groups, groups});
  for (int rank : {0, 1}) {
    for (const char* line : {"a 1", "a/check 1", "node 0 1"}) EXPECT_EQ(job[rank].line(), line);
    EXPECT_EQ(job[rank].exit_code(), 0) << job[rank].errors();
  }
}

TEST(Worker, GroupsOfOtherRanksMayHaveTheSameName) {
  std::vector<std::string> low;
  std::vector<std::string> high;
  for (int i = 0; i < 10; ++i) {
    low.push_back("pair" + std::to_string(i) + "=0,1");
    high.push_back("pair" + std::to_string(i) + "=2,3");
  }
  Job job("group", {low, low, high, high});
  for (int rank : {0, 1, 2, 3}) {
    for (int i = 0; i < 10; ++i)
      EXPECT_EQ(job[rank].line(), "pair" + std::to_string(i) + (rank < 2 ? " 1" : " 5"));
    EXPECT_EQ(job[rank].exit_code(), 0) << job[rank].errors();
  }
}

TEST(Worker, AListThatCannotBeRightIsRefusedAtOnce) {
  const auto start = steady_clock::now();
  for (const auto& [list, why] : std::vector<std::pair<std::string, std::string>>{
           {"0,99", "ranks [0, 99]: there is no rank 99; expected ranks from 0 to 1"},
           {"-1,0", "ranks [-1, 0]: there is no rank -1; expected ranks from 0 to 1"},
           {"0,0,1", "ranks [0, 0, 1]: expected ascending order, each rank once"},
           {"1", "ranks [1]: rank 0, which makes the call, is not among them"}}) {
    const test::TemporaryFolder folder;
    Rank rank("group", 0, 2, 1, true, folder.path(), {}, {"g=" + list});
    EXPECT_EQ(rank.exit_code(), 2);
    EXPECT_EQ(rank.errors(), "rank 0: group g: " + why + "\n");
  }
  EXPECT_LT(steady_clock::now() - start, 60s) << "the time to join is 120 s";
}

TEST(Worker, ListsThatDifferAreBothNamed) {
  const auto start = steady_clock::now();
  Job job("group", {{"g=0,1"}, {"g=0,1,2"}, {"g=1,2"}});
  const std::vector<std::string> expected{"rank 0 makes it of ranks [0, 1], rank 1 of [0, 1, 2]",
                                          "rank 1 makes it of ranks [0, 1, 2], rank 0 of [0, 1]",
                                          "rank 2 makes it of ranks [1, 2], rank 1 of [0, 1, 2]"};
  for (int rank : {0, 1, 2}) {
    EXPECT_EQ(job[rank].exit_code(), 2);
    EXPECT_EQ(job[rank].errors(), "rank " + std::to_string(rank) +
                                      ": group g: " + expected[static_cast<std::size_t>(rank)] +
                                      "; expected the same list on all of its ranks\n");
  }
  EXPECT_LT(steady_clock::now() - start, 60s) << "the time to join is 120 s";
}

TEST(Worker, ANameStandsForOneList) {
  Job job("group", {{"g=0,1", "g=0"}, {"g=0,1", "g=0,1"}});
  EXPECT_EQ(job[0].exit_code(), 2);
  EXPECT_EQ(
      job[0].errors(),
      "rank 0: group g: it was made of ranks [0, 1], now ranks [0] are asked for; expected another name\n");
}

TEST(Worker, RanksThatDoNotComeToASubGroupAreNamedWithTheTimeThatWasWaited) {
  Job job("early", {{}, {"g=0,1,2"}, {}});
  EXPECT_EQ(job[1].exit_code(), 1);
  EXPECT_EQ(job[1].errors(), "rank 1: forming the group g: 2 of 3 ranks did not come within 1 s: 0, 2\n");
}

TEST(Worker, ANameThatWasRefusedStaysSo) {
  Job job("again", {{"g=0,1"}, {"g=0,1,2"}, {}});
  EXPECT_THAT(job[0].line(), HasSubstr("rank 0 makes it of ranks [0, 1], rank 1 of [0, 1, 2]"));
  EXPECT_EQ(job[0].exit_code(), 2);
  EXPECT_EQ(job[0].errors(),
            "rank 0: group g: it was refused before, since its ranks gave different lists; expected another "
            "name\n");
}

TEST(Worker, NodesOfDifferentSizesHaveNoGroupsAcross) {
  Job job("groups", 3, 2, {});
  for (int rank : {0, 1, 2}) {
    EXPECT_EQ(job[rank].exit_code(), 2);
    EXPECT_THAT(job[rank].errors(), HasSubstr("node 0 has 2 workers, node 1 has 1"));
  }
}

TEST(Worker, WithDebuggingAMismatchIsToldAtOnceOnEveryRank) {
  Job job("mismatch", 3, 3, {"MUSTER_DEBUG=collectives"});
  for (int rank : {0, 1, 2}) {
    EXPECT_EQ(job[rank].exit_code(), 1);
    EXPECT_THAT(job[rank].errors(),
                HasSubstr("rank 0 calls barrier #1; ranks 1, 2 call all_reduce #1 (sum, 1000 x F64)"));
  }
}

TEST(Worker, DebuggingOnSomeRanksAloneIsToldOnAllOfThem) {
  const auto start = steady_clock::now();
  const ReservedPort port;
  const StoreHost store("127.0.0.1", 0);
  for (const bool in_rank_zero : {false, true}) {
    const test::TemporaryFolder folder;
    std::vector<std::unique_ptr<Rank>> job;
    for (int rank : {0, 1, 2})
      job.push_back(std::make_unique<Rank>(
          "sum", rank, 3, in_rank_zero ? port.port() : store.port(), !in_rank_zero, folder.path(),
          std::vector<std::string>(rank == 1 ? 1 : 0, "MUSTER_DEBUG=collectives")));
    for (int rank : {0, 1, 2}) {
      EXPECT_EQ(job[static_cast<std::size_t>(rank)]->exit_code(), 2);
      EXPECT_EQ(job[static_cast<std::size_t>(rank)]->errors(),
                "rank " + std::to_string(rank) +
                    ": forming the group: MUSTER_DEBUG=collectives is set on rank 1 and not on ranks 0, 2; "
                    "set it on all ranks or on none\n");
    }
  }
  EXPECT_LT(steady_clock::now() - start, 60s) << "the time to join is 120 s";
}

TEST(Worker, AnErrorIsPrintedInOneLineAndWrittenForTheLauncher) {
  const test::TemporaryFolder folder;
  Rank rank("throw", 1, 2, 1, true, folder.path());
  EXPECT_EQ(rank.exit_code(), 1);
  EXPECT_EQ(rank.errors(), "rank 1: the disk: on fire\n");
  const auto json = nlohmann::json::parse(test::read_file(rank.error_file()));
  const auto& message = json.at("message");
  EXPECT_EQ(message.at("message"), "std::runtime_error: the disk: on fire");
  EXPECT_EQ(message.at("extraInfo").at("py_callstack"), "std::runtime_error: the disk: on fire");
  const auto seconds = std::stoll(message.at("extraInfo").at("timestamp").get<std::string>());
  const auto now =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  EXPECT_NEAR(static_cast<double>(seconds), static_cast<double>(now), 60);
}

TEST(Worker, AnErrorOfSeveralLinesIsPrintedInOne) {
  const test::TemporaryFolder folder;
  Rank rank("lines", 1, 2, 1, true, folder.path());
  EXPECT_EQ(rank.exit_code(), 1);
  EXPECT_EQ(rank.errors(), "rank 1: the disk:;   on fire\n");
  EXPECT_EQ(rank.error_message(), "std::runtime_error: the disk:\r\n  on fire\n");
}

TEST(Worker, WhatIsThrownAndNoExceptionIsAnErrorToo) {
  const test::TemporaryFolder folder;
  Rank rank("number", 1, 2, 1, true, folder.path());
  EXPECT_EQ(rank.exit_code(), 1);
  const std::string what = "a thrown int, which is no std::exception and says nothing more";
  EXPECT_EQ(rank.errors(), "rank 1: " + what + "\n");
  EXPECT_EQ(rank.error_message(), "int: " + what);
}

TEST(Worker, AWrongArgumentIsExitCode2) {
  const test::TemporaryFolder folder;
  Rank rank("refuse", 0, 2, 1, true, folder.path());
  EXPECT_EQ(rank.exit_code(), 2);
  EXPECT_EQ(rank.errors(), "rank 0: --epochs -1: at least 0 is needed\n");
}

TEST(LocalAddress, IsTheOneThatReachesTheHost) {
  EXPECT_EQ(local_address_towards("127.0.0.1", 1), "127.0.0.1");
  EXPECT_THAT(local_address_towards("localhost", 1), AnyOf("127.0.0.1", "::1"));
  EXPECT_THROW(local_address_towards("", 1), CollectiveError);
}

}  // namespace
}  // namespace muster::worker
