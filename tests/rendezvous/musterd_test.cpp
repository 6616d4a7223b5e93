// The real daemon as a process: killed without warning, started again, asked by the real musterctl.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "base/unique_fd.hpp"
#include "rendezvous/client/remote_link.hpp"
#include "tests/support/temporary_folder.hpp"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const std::string kBin = MUSTER_BIN_DIR;

struct Output {
  int code = -1;
  std::string text;
};

/// Runs a command line whose words need no quoting; standard error is part of the text.
Output run(const std::string& command) {
  Output output;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "re");
  if (pipe == nullptr) return output;
  std::array<char, 4096> buffer;
  while (const auto size = std::fread(buffer.data(), 1, buffer.size(), pipe))
    output.text.append(buffer.data(), size);
  const int status = ::pclose(pipe);
  output.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return output;
}

class MusterdTest : public testing::Test {
 protected:
  void TearDown() override {
    links_.clear();
    if (pid_ > 0) stop(SIGKILL);
    if (io_.stopped()) io_.restart();
    io_.run_for(seconds(10));  // until the connections have ended
  }

  void start(std::vector<std::string> more = {}) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    UniqueFd ready(ends[0]);
    UniqueFd tell(ends[1]);
    std::vector<std::string> words{kBin + "/musterd",  "--listen",   endpoint_.text(),          "--state-dir",
                                   folder_ + "/state", "--ready-fd", std::to_string(tell.get())};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<char*> argv;
    for (auto& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    ASSERT_GE(pid_, 0);
    if (pid_ == 0) {
      const int log = ::open((folder_ + "/log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
      if (log < 0 || ::dup2(log, STDERR_FILENO) < 0) ::_exit(126);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    tell.reset();
    std::string line;
    char byte = 0;
    while (::read(ready.get(), &byte, 1) == 1 && byte != '\n') line += byte;
    ASSERT_FALSE(line.empty()) << "musterd did not start: " << log();
    endpoint_ = *parse_endpoint(line, 0);
  }

  int stop(int signal_number) {
    EXPECT_EQ(::kill(pid_, signal_number), 0);
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  std::string log() const {
    std::ifstream file(folder_ + "/log");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  Output ctl(const std::string& words) {
    return run(kBin + "/musterctl --endpoint " + endpoint_.text() + " " + words);
  }

  struct Heard {
    std::vector<DaemonMessage> messages;
    template <class T>
    int count() const {
      int n = 0;
      for (const auto& message : messages) n += std::holds_alternative<T>(message) ? 1 : 0;
      return n;
    }
  };

  std::shared_ptr<Heard> join(const std::string& node, int nodes) {
    RemoteLinkOptions options;
    options.endpoint = endpoint_;
    options.job = "mnist";
    options.node = node;
    options.incarnation = node + "-1";
    options.policy.min_nodes = options.policy.max_nodes = nodes;
    options.policy.allow_chaos = true;
    options.max_retry = milliseconds(100);
    const auto heard = std::make_shared<Heard>();
    auto& link = *links_.emplace_back(std::make_unique<RemoteLink>(io_, options));
    link.on_message([heard](const DaemonMessage& message) { heard->messages.push_back(message); });
    NodeOffer offer;
    offer.node = node;
    offer.host = "host-" + node;
    offer.store_port = 29500;
    offer.incarnation = options.incarnation;
    link.send(Join{offer});
    link.start();
    return heard;
  }

  template <class Condition>
  bool run_until(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + seconds(20);
    while (!condition()) {
      if (std::chrono::steady_clock::now() >= deadline) return false;
      if (io_.stopped()) io_.restart();
      io_.run_one_for(milliseconds(20));
    }
    return true;
  }

  int connections() const {
    int sum = 0;
    for (const auto& link : links_) sum += link->statistics().connections;
    return sum;
  }

  boost::asio::io_context io_;
  test::TemporaryFolder scratch_;
  const std::string folder_ = scratch_.path();
  pid_t pid_ = -1;
  Endpoint endpoint_{"127.0.0.1", 0};
  std::vector<std::unique_ptr<RemoteLink>> links_;
};

TEST_F(MusterdTest, D7_KilledTenTimesUnderARoundAndNothingRestarts) {
  start();
  const auto a = join("a", 2);
  const auto b = join("b", 2);
  ASSERT_TRUE(run_until([&] { return a->count<Assignment>() == 1 && b->count<Assignment>() == 1; }));
  for (int i = 1; i <= 10; ++i) {
    EXPECT_EQ(stop(SIGKILL), 128 + SIGKILL);
    start();
    ASSERT_TRUE(run_until([&] { return connections() >= 2 * (i + 1); })) << log();
  }
  for (const auto& link : links_) link->send(WorkersSucceeded{1});
  ASSERT_TRUE(run_until([&] { return a->count<JobEnded>() == 1 && b->count<JobEnded>() == 1; })) << log();
  EXPECT_EQ(a->count<Assignment>() + b->count<Assignment>(), 2);
  EXPECT_EQ(a->count<StopWorkers>() + b->count<StopWorkers>(), 0);
  EXPECT_EQ(std::get<JobEnded>(a->messages.back()).outcome.kind, OutcomeKind::succeeded);
}

TEST_F(MusterdTest, MusterctlShowsAndChanges) {
  start();
  EXPECT_EQ(ctl("status").text, "no jobs\n");
  const auto a = join("a", 2);
  ASSERT_TRUE(run_until([&] { return a->count<Waiting>() == 1; }));
  const auto status = ctl("status");
  EXPECT_EQ(status.code, 0);
  EXPECT_NE(status.text.find("JOB    PHASE      ROUND  NODES"), std::string::npos) << status.text;
  EXPECT_NE(status.text.find("mnist  gathering  0      1 of 2"), std::string::npos) << status.text;
  EXPECT_NE(status.text.find("  a     127.0.0.1  -      waiting"), std::string::npos) << status.text;
  EXPECT_NE(ctl("events").text.find("node a (127.0.0.1) joins with 1 worker\n"), std::string::npos);
  EXPECT_EQ(ctl("--json status").text.front(), '{');
  EXPECT_EQ(ctl("scale 1:1").code, 0);
  ASSERT_TRUE(run_until([&] { return a->count<Assignment>() == 1; }));
  EXPECT_EQ(ctl("stop mnist").code, 0);
  ASSERT_TRUE(
      run_until([&] { return a->count<StopWorkers>() + a->count<Drain>() + a->count<JobEnded>() > 0; }));
}

TEST_F(MusterdTest, MusterctlSaysWhatIsWrong) {
  start();
  EXPECT_EQ(ctl("scale many").code, 2);
  EXPECT_EQ(ctl("scale 4:2").code, 2);
  EXPECT_EQ(ctl("").code, 2);
  EXPECT_EQ(ctl("--job none status").code, 1);
  EXPECT_NE(ctl("--job none status").text.find("no job 'none'"), std::string::npos);
  stop(SIGTERM);
  const auto gone = ctl("status");
  EXPECT_EQ(gone.code, 1);
  EXPECT_NE(gone.text.find("ECONNREFUSED"), std::string::npos) << gone.text;
}

TEST_F(MusterdTest, MusterctlNamesAWordThatItDoesNotKnowAndTheCommandsThatThereAre) {
  const auto says = [](const std::string& words) {
    const auto output = run(kBin + "/musterctl " + words);
    EXPECT_EQ(output.code, 2) << words;
    EXPECT_EQ(std::count(output.text.begin(), output.text.end(), '\n'), 1) << output.text;
    return output.text;
  };
  const std::string known =
      "the commands are status, events, drain, scale, close-roster, clear-cooldown, stop, chaos\n";
  EXPECT_EQ(says("bogus"), "musterctl: bogus: there is no such command; " + known);
  EXPECT_EQ(says("--json bogus"), "musterctl: bogus: there is no such command; " + known);
  EXPECT_EQ(says("--bogus"), "musterctl: --bogus: there is no such option; --help lists them\n");
  EXPECT_EQ(says(""), "musterctl: needs a command: " + known);
  EXPECT_EQ(says("chaos"), "musterctl: chaos needs a command: the commands are worker, agent\n");
  EXPECT_EQ(says("chaos rank 1"),
            "musterctl: chaos rank: there is no such command; the commands are worker, agent\n");
}

TEST_F(MusterdTest, MusterctlStopsOneJobAndNoOther) {
  start();
  const auto a = join("a", 1);
  ASSERT_TRUE(run_until([&] { return a->count<Assignment>() == 1; }));
  const auto two = ctl("--job other stop mnist");
  EXPECT_EQ(two.code, 2);
  EXPECT_EQ(two.text, "musterctl: stop mnist: --job names another one, other; name one job\n");
  EXPECT_EQ(ctl("stop mnist --job=other").code, 2);
  EXPECT_EQ(a->count<StopWorkers>() + a->count<Drain>() + a->count<JobEnded>(), 0);
  EXPECT_EQ(ctl("--job mnist stop mnist").code, 0);
}

TEST_F(MusterdTest, MusterctlRehearsesFaultsAndTheDaemonRemembersThem) {
  start();
  const auto a = join("a", 1);
  ASSERT_TRUE(run_until([&] { return a->count<Assignment>() == 1; }));
  EXPECT_EQ(ctl("chaos worker 0").text, "SIGKILL goes to rank 0 on a\n");
  EXPECT_EQ(ctl("chaos agent a --signal=term --job mnist").text, "SIGTERM goes to the launcher of a\n");
  ASSERT_TRUE(run_until([&] { return a->count<Inject>() == 2; }));
  const auto nobody = ctl("chaos worker 7 --signal 19");
  EXPECT_EQ(nobody.code, 1);
  EXPECT_NE(nobody.text.find("round 1 has no rank 7: its only one is 0"), std::string::npos) << nobody.text;
  const auto wrong = ctl("chaos worker 0 --signal=USR1");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.text.find("--signal: 'USR1': a worker is sent SIGKILL, SIGTERM"), std::string::npos)
      << wrong.text;
  EXPECT_EQ(ctl("chaos agent a --signal=STOP").code, 2);
  EXPECT_EQ(ctl("chaos worker first").code, 2);
  EXPECT_EQ(ctl("chaos worker -- -1").code, 2);
  EXPECT_EQ(ctl("chaos worker").code, 2);
  stop(SIGKILL);
  start();
  const auto events = ctl("events").text;
  EXPECT_NE(events.find("an operator sent SIGKILL to rank 0 on a (musterctl chaos)\n"), std::string::npos)
      << events;
  EXPECT_NE(events.find("an operator sent SIGTERM to the launcher of a (musterctl chaos)\n"),
            std::string::npos);
  EXPECT_EQ(events.find("SIGSTOP"), std::string::npos) << events;
}

TEST_F(MusterdTest, AnEmptyOrImpossibleTargetIsRefusedAndHurtsNobody) {
  start();
  const auto a = join("a", 1);
  ASSERT_TRUE(run_until([&] { return a->count<Assignment>() == 1; }));
  const auto empty = ctl("chaos worker ''");
  EXPECT_EQ(empty.text, "musterctl: chaos worker: '': not a whole number from 0 to 16777216\n");
  EXPECT_EQ(empty.code, 2);
  EXPECT_EQ(
      ctl("chaos agent ''").text,
      "musterctl: the node: this cannot be a name; a name has 1 to 256 bytes and no control characters\n");
  for (const char* words :
       {"chaos agent ''", "chaos agent 'a\nb'", "drain ''", "clear-cooldown ''", "stop ''",
        "--job= chaos worker 0", "--job '' chaos agent a", "--job '' status", "chaos worker -1",
        "chaos worker 99999999999", "chaos worker 1.5", "chaos worker ' 0'"}) {
    const auto refused = ctl(words);
    EXPECT_EQ(refused.code, 2) << words << ": " << refused.text;
    EXPECT_EQ(std::count(refused.text.begin(), refused.text.end(), '\n'), 1) << refused.text;
  }
  const auto unknown = ctl("chaos agent 'a b'");
  EXPECT_EQ(unknown.text, "musterctl: refused: a b is not in job mnist\n");
  EXPECT_EQ(unknown.code, 1);
  EXPECT_EQ(a->count<Inject>() + a->count<StopWorkers>() + a->count<Drain>() + a->count<JobEnded>(), 0);
}

TEST_F(MusterdTest, N1_TheSecretIsInNoArgumentAndNoLog) {
  const std::string secret = "a-secret-of-thirty-two-characters";
  std::ofstream(folder_ + "/token") << secret << "\n";
  std::filesystem::permissions(folder_ + "/token", std::filesystem::perms::owner_read);
  start({"--token-file", folder_ + "/token", "--log-level", "debug"});
  EXPECT_EQ(ctl("status").code, 1);
  const auto with = ctl("--token-file " + folder_ + "/token status");
  EXPECT_EQ(with.code, 0) << with.text;
  EXPECT_NE(log().find("wants a token"), std::string::npos) << log();
  EXPECT_EQ(log().find(secret), std::string::npos);
  for (const char* file : {"cmdline", "environ"}) {
    std::ifstream proc("/proc/" + std::to_string(pid_) + "/" + file);
    const std::string text{std::istreambuf_iterator<char>(proc), {}};
    EXPECT_EQ(text.find(secret), std::string::npos) << file;
  }
}

TEST_F(MusterdTest, SigtermEndsItCleanly) {
  start();
  EXPECT_EQ(stop(SIGTERM), 0);
  EXPECT_NE(log().find("stopping: signal 15"), std::string::npos);
}

TEST_F(MusterdTest, WrongOptionsAreNamed) {
  const auto musterd = kBin + "/musterd ";
  EXPECT_EQ(run(musterd + "--nonsense").code, 2);
  EXPECT_EQ(run(musterd + "--log-level loud").code, 2);
  EXPECT_EQ(run(musterd + "--token-file ''").code, 2) << "an open daemon is not what was meant";
  EXPECT_NE(run("MUSTER_TOKEN_FILE= " + musterd).code, 0);
  EXPECT_NE(run(musterd + "--listen 127.0.0.1:99999").text.find("99999"), std::string::npos);
  EXPECT_NE(run(musterd + "--listen 192.0.2.1:0").text.find("EADDRNOTAVAIL"), std::string::npos);
  EXPECT_NE(run(musterd + "--token-file /nonexistent").text.find("ENOENT"), std::string::npos);
}

// Field report: "terminate called", 134.
TEST_F(MusterdTest, AFolderInTheJournalsPlaceIsOneSentence) {
  std::filesystem::create_directories(folder_ + "/state/journal");
  const auto output = run(kBin + "/musterd --listen 127.0.0.1:0 --state-dir " + folder_ + "/state");
  EXPECT_EQ(output.code, 1);
  EXPECT_NE(output.text.find("/state/journal: Is a directory (EISDIR)"), std::string::npos) << output.text;
  EXPECT_EQ(std::count(output.text.begin(), output.text.end(), '\n'), 1) << output.text;
}

TEST_F(MusterdTest, D7_StartedOnAFullDiskItGoesOnWithoutItsJournalAndLosesNobody) {
  start();
  const auto a = join("a", 1);
  ASSERT_TRUE(run_until([&] { return a->count<Assignment>() == 1; }));
  stop(SIGKILL);
  std::filesystem::create_symlink("/dev/full", folder_ + "/state/journal.new");
  start();
  EXPECT_NE(log().find("goes on without its journal"), std::string::npos) << log();
  ASSERT_TRUE(run_until([&] { return connections() == 2; })) << log();
  links_.front()->send(WorkersSucceeded{1});
  ASSERT_TRUE(run_until([&] { return a->count<JobEnded>() == 1; })) << log();
  EXPECT_EQ(a->count<StopWorkers>(), 0);
}

TEST_F(MusterdTest, TheEventsBeforeADaemonsReturnAreKept) {
  start();
  const auto a = join("a", 1);
  ASSERT_TRUE(run_until([&] { return a->count<Assignment>() == 1; }));
  stop(SIGKILL);
  start();
  const auto events = ctl("events").text;
  EXPECT_NE(events.find("node a (127.0.0.1) joins with 1 worker\n"), std::string::npos) << events;
  EXPECT_NE(events.find("round 1: 1 node, 1 worker, master"), std::string::npos) << events;
  EXPECT_NE(events.find("the daemon is back from its journal"), std::string::npos) << events;
}

TEST_F(MusterdTest, ADaemonForOneJobGoesWithIt) {
  start({"--exit-with-last-job"});
  const auto a = join("a", 1);
  ASSERT_TRUE(run_until([&] { return a->count<Assignment>() == 1; }));
  links_.front()->send(WorkersSucceeded{1});
  ASSERT_TRUE(run_until([&] { return a->count<JobEnded>() == 1; }));
  links_.clear();
  int status = 0;
  ASSERT_TRUE(run_until([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; })) << log();
  pid_ = -1;
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace muster::rendezvous
