#include "agent/process/proc_files.hpp"

#include "tests/agent/process/processes.hpp"

namespace muster::agent {
namespace {

using ProcFiles = Processes;

TEST_F(ProcFiles, ChildrenAreListedZombiesIncluded) {
  auto worker = std::move(*WorkerProcess::adopt(io.get_executor(), start(request({"wait"}))));
  EXPECT_THAT(own_children(), ::testing::Contains(worker->pid()));
  ASSERT_TRUE(worker->signal_main(SIGKILL));
  ASSERT_TRUE(comes_true([&] { return state_of(worker->pid()) == 'Z'; }));
  EXPECT_THAT(own_children(), ::testing::Contains(worker->pid()));
  EXPECT_THAT(state_sentence(worker->pid()), ::testing::HasSubstr("is in state Z (zombie)"));
}

TEST_F(ProcFiles, AVariableIsFoundByItsWholeName) {
  SpawnRequest wanted = request({"wait"});
  wanted.environment = {"LOCAL_RANK=7", "RANK=3", "EMPTY="};
  auto worker = std::move(*WorkerProcess::adopt(io.get_executor(), start(wanted)));
  EXPECT_EQ(started_with(worker->pid(), "RANK"), "3");
  EXPECT_EQ(started_with(worker->pid(), "EMPTY"), "");
  EXPECT_EQ(started_with(worker->pid(), "RAN"), std::nullopt);
}

TEST_F(ProcFiles, ASignalIsMindedByWhoCatchesIgnoresOrHoldsIt) {
  for (const char* step : {"hold", "ignore"}) {
    const pid_t pid = start(request({step, "USR1", "then", "touch", path(step), "then", "wait"}));
    auto worker = std::move(*WorkerProcess::adopt(io.get_executor(), pid));
    ASSERT_TRUE(comes_true([&] { return std::filesystem::exists(path(step)); }));
    EXPECT_TRUE(minds_signal(pid, SIGUSR1)) << step;
    EXPECT_FALSE(minds_signal(pid, SIGUSR2)) << step;
  }
  EXPECT_FALSE(minds_signal(0, SIGUSR1));
}

TEST_F(ProcFiles, AProcessThatIsGoneGivesEmptyAnswers) {
  EXPECT_EQ(started_with(0, "RANK"), std::nullopt);
  EXPECT_EQ(name_with_command(0), "pid 0");
  EXPECT_EQ(state_sentence(0), "pid 0 cannot be looked at under /proc");
}

TEST_F(ProcFiles, ACommandIsOneHarmlessShortLine) {
  SpawnRequest wanted = request({"wait", "then", "x\n\x1b[2J", std::string(200, 'y')});
  auto worker = std::move(*WorkerProcess::adopt(io.get_executor(), start(wanted)));
  const std::string begin = "pid " + std::to_string(worker->pid()) + " (";
  EXPECT_THAT(name_with_command(worker->pid()),
              ::testing::AllOf(::testing::StartsWith(begin + child_program.substr(0, 60)),
                               ::testing::EndsWith(" ...)")));
  for (const char byte : name_with_command(worker->pid())) EXPECT_GE(byte, ' ');
}

}  // namespace
}  // namespace muster::agent
