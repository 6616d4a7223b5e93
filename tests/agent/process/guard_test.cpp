#include "agent/process/guard.hpp"

#include "tests/agent/process/processes.hpp"

namespace muster::agent {
namespace {

class GuardTest : public Processes {
 protected:
  // A small agent in a process of its own: a guard, one worker with two grandchildren, one of them in a
  // session of its own. It does nothing further.
  pid_t start_agent() {
    const pid_t agent = ::fork();
    if (agent > 0) return agent;
    auto guard = Guard::start();
    boost::asio::io_context own_io{1};
    SpawnRequest wanted = request({"grandchild", path("group"), "600000", "then", "session-grandchild",
                                   path("session"), "600000", "then", "pid", path("worker"), "then", "hang"});
    wanted.environment.push_back(guard->mark());
    wanted.guard_fd = guard->fd();
    const auto worker = spawn(own_io.get_executor(), wanted);
    std::ofstream(path("guard.partial")) << guard->pid();
    std::filesystem::rename(path("guard.partial"), path("guard"));
    if (!worker) ::_exit(1);
    for (;;) ::pause();
  }
};

TEST_F(GuardTest, G1_NothingOutlivesAnAgentThatIsKilled) {
  const pid_t agent = start_agent();
  const std::vector<pid_t> all{pid_in("worker"), pid_in("group"), pid_in("session"), pid_in("guard")};
  for (const pid_t pid : all) ASSERT_TRUE(alive(pid));
  ::kill(agent, SIGKILL);
  ASSERT_EQ(::waitpid(agent, nullptr, 0), agent);
  for (const pid_t pid : all) EXPECT_TRUE(comes_true([&] { return !alive(pid); }, 2s)) << pid;
}

TEST_F(GuardTest, G1_KillingTheAgentAtAnyMomentOfASpawnLeavesNothing) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    for (const char* name : {"worker", "group", "session", "guard"}) std::filesystem::remove(path(name));
    const pid_t agent = start_agent();
    std::this_thread::sleep_for(std::chrono::microseconds(200 * attempt));  // the moment is the test's matter
    ::kill(agent, SIGKILL);
    ASSERT_EQ(::waitpid(agent, nullptr, 0), agent);
    // Whatever had written its pid by now, or still does, must go.
    for (const char* name : {"worker", "group", "session"})
      EXPECT_TRUE(comes_true(
          [&] { return !std::filesystem::exists(path(name)) || !alive(std::stoi(read_file(path(name)))); },
          2s))
          << name << " in attempt " << attempt;
  }
}

TEST_F(GuardTest, SignalsToTheAgentsGroupDoNotEndTheGuard) {
  auto guard = Guard::start();
  ASSERT_TRUE(guard);
  ASSERT_TRUE(comes_true([&] { return ::getsid(guard->pid()) == guard->pid(); }));
  ASSERT_TRUE(comes_true(
      [&] { return read_file("/proc/" + std::to_string(guard->pid()) + "/comm") == "launch-guard\n"; }));
  ::kill(guard->pid(), SIGTERM);
  ::kill(guard->pid(), SIGINT);
  guard->group_is_gone(123456);
  EXPECT_TRUE(alive(guard->pid()));
  guard->all_is_over();
}

TEST_F(GuardTest, G1_KillingByTheLaunchersNameDoesNotHitTheGuard) {
  const std::string own = read_file("/proc/self/cmdline");
  auto guard = Guard::start();
  ASSERT_TRUE(guard);
  const std::string folder = "/proc/" + std::to_string(guard->pid());
  ASSERT_TRUE(comes_true([&] { return read_file(folder + "/cmdline").starts_with("launch-guard"); }));
  const std::string words = read_file(folder + "/cmdline");
  EXPECT_EQ(words.find_first_not_of('\0', std::string(kGuardName).size()), std::string::npos) << words;
  EXPECT_EQ(read_file(folder + "/comm"), "launch-guard\n");
  EXPECT_EQ(read_file("/proc/self/cmdline"), own) << "the launcher keeps its name";
  guard->all_is_over();
}

TEST_F(GuardTest, AfterAllIsOverItTouchesNothing) {
  auto guard = std::make_unique<Guard>(std::move(*Guard::start()));
  SpawnRequest wanted = request({"wait"});
  wanted.environment.push_back(guard->mark());
  wanted.guard_fd = guard->fd();
  auto worker = std::move(*WorkerProcess::adopt(io.get_executor(), start(wanted)));
  guard->all_is_over();
  guard.reset();
  EXPECT_TRUE(alive(worker->pid()));
}

TEST_F(GuardTest, AGuardThatIsGoneDoesNotKeepAWorkerFromStarting) {
  auto guard = Guard::start();
  ::kill(guard->pid(), SIGKILL);
  ASSERT_TRUE(comes_true([&] { return !alive(guard->pid()); }));
  SpawnRequest wanted = request({"exit", "3"});
  wanted.guard_fd = guard->fd();
  EXPECT_EQ(end_of(wanted), ExitCause::exited(3));
  guard->group_is_gone(1);
}

TEST_F(GuardTest, G1_AnotherGuardTakesThePlaceOfOneThatWasKilled) {
  auto guard = std::make_unique<Guard>(std::move(*Guard::start()));
  SpawnRequest wanted = request({"wait"});  // without the mark: known by its group alone
  wanted.guard_fd = guard->fd();
  const pid_t worker = start(wanted);
  const pid_t first = guard->pid();
  ::kill(first, SIGKILL);
  const auto ended = guard->replace({worker});
  ASSERT_TRUE(ended);
  EXPECT_EQ(*ended, "pid " + std::to_string(first) + " was killed by SIGKILL, not sent by muster");
  EXPECT_NE(guard->pid(), first);
  EXPECT_TRUE(alive(worker));
  guard.reset();  // as if the agent had died
  EXPECT_TRUE(comes_true([&] { return ::waitpid(worker, nullptr, WNOHANG) == worker; }, 2s));
}

TEST_F(GuardTest, ANestedMustersMarkCarriesTheOuterOne) {
  ::setenv("MUSTER_AGENT", "12.34.56;", 1);
  auto guard = Guard::start();
  ::unsetenv("MUSTER_AGENT");
  EXPECT_THAT(guard->mark(), ::testing::StartsWith("MUSTER_AGENT=12.34.56;" + std::to_string(::getpid())));
  guard->all_is_over();
}

}  // namespace
}  // namespace muster::agent
