// Somebody stops the job from outside.
#include <gmock/gmock.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "tests/system/muster_job.hpp"

namespace muster::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

struct StopTest : ::testing::Test {
  // Starts two workers that wait; returns when both have done `steps`.
  std::unique_ptr<Program> start(const std::string& steps, const std::string& more_options = "") {
    auto program = std::make_unique<Program>(muster_command("--nproc-per-node=2 --rdzv-id=stop --log-dir=" +
                                                                (job.folder / "logs") + " " + more_options,
                                                            steps + "out 1 ready then wait"),
                                             job.options());
    EXPECT_TRUE(program->wait_for("ready 0\nready 0\n", 60s));
    return program;
  }
  nlohmann::json status() const {
    return nlohmann::json::parse(content(job.folder / "logs/stop/status.json"));
  }

  Job job;
};

TEST_F(StopTest, F9_TermIsToldFromAFailure) {
  auto program = start("");
  program->signal(SIGTERM);
  const auto ended = program->wait(20s);
  EXPECT_EQ(ended.code, 143) << ended.err;
  EXPECT_TRUE(job.nothing_left());
  EXPECT_THAT(status()["reason"].get<std::string>(), ::testing::AnyOf("preempted", "stopped"));
  EXPECT_EQ(status()["stop_signal"], "SIGTERM");
  EXPECT_EQ(status()["exit_code"], 143);
  const auto ended_status = status();
  for (const auto& worker : ended_status["workers"]) EXPECT_EQ(worker["ended_by"], "muster");
}

TEST_F(StopTest, F7_CtrlCPrintsThreeLinesAtMost) {
  auto program = start("");
  ASSERT_TRUE(program->wait_for("round 1", 20s));
  program->signal(SIGINT);
  const auto ended = program->wait(20s);
  EXPECT_EQ(ended.code, 130) << ended.err;
  const auto after_start = ended.err.substr(ended.err.find("round 1"));
  EXPECT_LE(launcher_lines(after_start), 3) << ended.err;
  EXPECT_THAT(ended.err, Not(HasSubstr("{"))) << "no machine form on the screen";
  EXPECT_TRUE(job.nothing_left());
}

TEST_F(StopTest, I8_TermPrintsNoJsonAndFewLines) {
  auto program = start("");
  program->signal(SIGTERM);
  const auto ended = program->wait(20s);
  EXPECT_THAT(ended.err, Not(HasSubstr("{")));
  EXPECT_LE(launcher_lines(ended.err.substr(ended.err.find("round 1"))), 5) << ended.err;
}

TEST_F(StopTest, F3_AWorkerMaySaveAndLeave) {
  auto program = start("exit-on-term 0 then ");
  program->signal(SIGTERM);
  const auto ended = program->wait(20s);
  EXPECT_EQ(ended.code, 143) << ended.err;
  EXPECT_EQ(status()["workers"][0]["exit"], 0);
}

TEST_F(StopTest, AWorkerThatIsSuspendedHearsOfIt) {
  auto program = start("exit-on-term 0 then pid " + (job.folder / "pid-{rank}") + " then ");
  ASSERT_EQ(::kill(std::stoi(content(job.folder / "pid-0")), SIGSTOP), 0);
  program->signal(SIGTERM);
  EXPECT_EQ(program->wait(20s).code, 143);
  EXPECT_EQ(status()["workers"][0]["exit"], 0);
}

TEST_F(StopTest, AWorkerThatIgnoresTermIsKilledAfterTheGrace) {
  auto program = start("ignore TERM then ", "--stop-grace=300ms");
  program->signal(SIGTERM);
  const auto ended = program->wait(20s);
  EXPECT_EQ(ended.code, 143) << ended.err;
  EXPECT_EQ(status()["workers"][0]["signal"], "SIGKILL");
  EXPECT_EQ(status()["workers"][0]["ended_by"], "muster");
  EXPECT_TRUE(job.nothing_left());
}

TEST_F(StopTest, G5_GrandchildrenGoToo) {
  auto program = start("session-grandchild " + (job.folder / "grandchild-{rank}") + " 60000 then ");
  program->signal(SIGTERM);
  EXPECT_EQ(program->wait(20s).code, 143);
  EXPECT_TRUE(job.nothing_left());
}

TEST(Failure, H5_TheOthersAreStoppedAtOnce) {
  const Job job;
  const auto ended = job.run("--nproc-per-node=4 --rdzv-id=gang --log-dir=" + (job.folder / "logs"),
                             "if-rank 2 then exit 9 then end then wait");
  EXPECT_EQ(ended.code, 9) << ended.err;
  EXPECT_TRUE(job.nothing_left());
  const auto status = nlohmann::json::parse(content(job.folder / "logs/gang/status.json"));
  ASSERT_EQ(status["workers"].size(), 4u);
  for (const auto& worker : status["workers"]) {
    if (worker["rank"] == 2) continue;
    EXPECT_EQ(worker["ended_by"], "muster");
    EXPECT_LT(
        worker["ended_ms"].get<std::int64_t>() - status["first_failure"]["ended_ms"].get<std::int64_t>(),
        1000);
  }
}

TEST(Failure, F7_TheLauncherEndsWithItsLastWorker) {
  const Job job;
  const auto ended = job.run("--nproc-per-node=1", "exit 0");
  EXPECT_EQ(ended.code, 0);
  // Far more than a quiet machine needs, far less than any grace or barrier.
  EXPECT_LT(ended.took, 8s);
}

}  // namespace
}  // namespace muster::test
