#include "agent/report/oom_evidence.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

namespace muster::agent {
namespace {

TEST(OomParsers, FindTheCountInAllThreeFiles) {
  EXPECT_EQ(parse_oom_kills("low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n"), 2u);
  EXPECT_EQ(parse_oom_kills("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"), 1u);
  EXPECT_EQ(parse_oom_kills("pgpgin 5\noom_kill 40\n"), 40u);
  EXPECT_EQ(parse_oom_kills("oom_kill_disable 0\n"), std::nullopt);
  EXPECT_EQ(parse_oom_kills("oom_kill many\n"), std::nullopt);
  EXPECT_EQ(parse_oom_kills(""), std::nullopt);
}

TEST(OomParsers, FindTheMemoryCgroup) {
  const auto v2 = parse_memory_cgroup("0::/user.slice/job\n");
  ASSERT_TRUE(v2);
  EXPECT_EQ(v2->path, "/user.slice/job");
  EXPECT_FALSE(v2->v1);
  const auto v1 = parse_memory_cgroup("5:cpu,cpuacct:/x\n4:memory:/a/b:c\n0::/\n");
  ASSERT_TRUE(v1);
  EXPECT_EQ(v1->path, "/memory/a/b:c");
  EXPECT_TRUE(v1->v1);
  EXPECT_FALSE(parse_memory_cgroup("nonsense"));
}

TEST(OomSentence, I1_TellsOfKillPeakAndLimit) {
  MemoryCounters before;
  MemoryCounters after;
  EXPECT_EQ(oom_sentence(before, after), "its cgroup counted no OOM kill");
  EXPECT_FALSE(tells_of_oom_kill(oom_sentence(before, after)));
  after.oom_kills = 1;
  after.peak_bytes = 198 << 20;
  after.limit_bytes = 200 << 20;
  EXPECT_EQ(oom_sentence(before, after), "its cgroup counted 1 OOM kill (peak 198 MiB of 200 MiB)");
  EXPECT_TRUE(tells_of_oom_kill(oom_sentence(before, after)));
  after.of_whole_machine = true;
  after.peak_bytes.reset();
  after.limit_bytes.reset();
  after.oom_kills = 2;
  EXPECT_EQ(oom_sentence(before, after), "the machine counted 2 OOM kills");
  EXPECT_FALSE(tells_of_oom_kill(""));
}

struct OomEvidenceTest : ::testing::Test {
  OomEvidenceTest() {
    std::string pattern = ::testing::TempDir() + "oom_XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    root = pattern;
  }
  ~OomEvidenceTest() override { std::filesystem::remove_all(root); }

  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  }

  std::filesystem::path root;
};

TEST_F(OomEvidenceTest, Version2TellsOfAKillOnce) {
  write("proc/self/cgroup", "0::/job\n");
  write("cgroup/job/memory.events", "oom 0\noom_kill 4\n");
  write("cgroup/job/memory.max", "max\n");
  OomEvidence evidence(root / "cgroup", root / "proc");
  EXPECT_EQ(evidence.since_last_time(), "its cgroup counted no OOM kill");
  write("cgroup/job/memory.events", "oom 1\noom_kill 5\n");
  EXPECT_EQ(evidence.since_last_time(), "its cgroup counted 1 OOM kill");
  EXPECT_EQ(evidence.since_last_time(), "its cgroup counted no OOM kill");
}

TEST_F(OomEvidenceTest, Version1InAContainerThatHidesItsPath) {
  write("proc/self/cgroup", "4:memory:/hosts/own/path\n");
  write("cgroup/memory/memory.oom_control", "oom_kill_disable 0\noom_kill 0\n");
  write("cgroup/memory/memory.limit_in_bytes", "209715200\n");
  write("cgroup/memory/memory.max_usage_in_bytes", "209715200\n");
  OomEvidence evidence(root / "cgroup", root / "proc");
  write("cgroup/memory/memory.oom_control", "oom_kill_disable 0\noom_kill 1\n");
  EXPECT_EQ(evidence.since_last_time(), "its cgroup counted 1 OOM kill (peak 200 MiB of 200 MiB)");
}

TEST_F(OomEvidenceTest, WithoutACgroupTheMachineIsAsked) {
  write("proc/vmstat", "pgpgin 1\noom_kill 7\n");
  OomEvidence evidence(root / "cgroup", root / "proc");
  write("proc/vmstat", "pgpgin 1\noom_kill 8\n");
  EXPECT_EQ(evidence.since_last_time(), "the machine counted 1 OOM kill");
}

TEST_F(OomEvidenceTest, NothingReadableSaysNothing) {
  OomEvidence evidence(root / "cgroup", root / "proc");
  EXPECT_EQ(evidence.since_last_time(), "");
}

}  // namespace
}  // namespace muster::agent
