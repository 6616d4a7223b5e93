// Whatever kills the launcher, nothing of the job outlives it.
#include <gmock/gmock.h>
#include <signal.h>

#include <fstream>
#include <random>
#include <thread>

#include "tests/system/muster_job.hpp"

namespace muster::test {
namespace {

using namespace std::chrono_literals;

TEST(Leftover, G1_NoWorkerIsAliveTwoSecondsAfterKill9) {
  std::mt19937 random(20);
  for (int attempt = 0; attempt < 50; ++attempt) {
    const Job job;
    Program program(muster_command("--nproc-per-node=4", "out 1 up then wait"), job.options());
    // From before the first fork to after the last exec; the moment is the input of this test.
    const auto delay = std::chrono::microseconds(random() % 60'000);
    std::this_thread::sleep_for(delay);
    program.signal(SIGKILL);
    ASSERT_EQ(program.wait(20s).code, 137);
    ASSERT_TRUE(job.nothing_left(2s)) << "attempt " << attempt << ", killed after " << delay.count() << " us";
  }
}

/// Two workers, each with a child in a session of its own; each says "up" once that is there.
std::vector<std::string> with_grandchildren(const Job& job) {
  const std::string file = job.folder / "grandchild-{rank}";
  return muster_command("--nproc-per-node=2", "session-grandchild " + file + " 60000 then await " + file +
                                                  " then out 1 up then wait");
}

TEST(Leftover, G1_GrandchildrenInSessionsOfTheirOwnGoToo) {
  for (int attempt = 0; attempt < 5; ++attempt) {
    const Job job;
    Program program(with_grandchildren(job), job.options());
    ASSERT_TRUE(program.wait_for("up", 20s));
    program.signal(SIGKILL);
    ASSERT_EQ(program.wait(20s).code, 137);
    ASSERT_TRUE(job.nothing_left(2s)) << "attempt " << attempt;
  }
}

/// -1: it has not taken its name yet.
pid_t pid_of_guard(const Program& program) {
  const std::string parent = std::to_string(program.pid());
  std::ifstream children("/proc/" + parent + "/task/" + parent + "/children");
  for (pid_t child = 0; children >> child;) {
    std::string name;
    std::ifstream("/proc/" + std::to_string(child) + "/comm") >> name;
    if (name == "launch-guard") return child;
  }
  return -1;
}

TEST(Leftover, G1_WhoKillsTheGuardAndThenMusterLeavesNothingEither) {
  const Job job;
  Program program(with_grandchildren(job), job.options());
  ASSERT_TRUE(program.wait_for("up", 20s));
  for (int time = 0; time < 2; ++time) {
    pid_t guard = -1;
    for (int look = 0; guard < 0 && look < 2000; ++look, std::this_thread::sleep_for(10ms))
      guard = pid_of_guard(program);
    ASSERT_GT(guard, 0);
    ASSERT_EQ(::kill(guard, SIGKILL), 0);
    const std::string killed =
        "pid " + std::to_string(guard) + " was killed by SIGKILL, not sent by muster; pid ";
    ASSERT_TRUE(program.wait_for(killed, 20s));
  }
  program.signal(SIGKILL);
  ASSERT_EQ(program.wait(20s).code, 137);
  ASSERT_TRUE(job.nothing_left(2s));
}

// As `pkill -9 -f muster` does, among the launcher and its own processes: by the names that it can read.
TEST(Leftover, G1_WhoKillsAllThatIsCalledMusterLeavesNothing) {
  const Job job;
  Program program(with_grandchildren(job), job.options());
  ASSERT_TRUE(program.wait_for("up", 20s));
  for (int look = 0; pid_of_guard(program) < 0 && look < 2000; ++look) std::this_thread::sleep_for(10ms);
  const pid_t guard = pid_of_guard(program);
  ASSERT_GT(guard, 0);
  const std::string folder = "/proc/" + std::to_string(guard);
  EXPECT_EQ(content(folder + "/comm").find("muster"), std::string::npos);
  EXPECT_EQ(content(folder + "/cmdline").find("muster"), std::string::npos);
  program.signal(SIGKILL);
  ASSERT_EQ(program.wait(20s).code, 137);
  ASSERT_TRUE(job.nothing_left(2s));
}

}  // namespace
}  // namespace muster::test
