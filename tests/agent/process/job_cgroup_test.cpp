#include "agent/process/job_cgroup.hpp"

#include "agent/process/guard.hpp"
#include "tests/agent/process/processes.hpp"

namespace muster::agent {
namespace {

constexpr const char* kHybrid =
    "32 31 0:30 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

TEST(CgroupV2Folder, IsBelowTheMountPoint) {
  EXPECT_EQ(cgroup_v2_folder("30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n",
                             "0::/system.slice/train.service\n"),
            "/sys/fs/cgroup/system.slice/train.service");
  EXPECT_EQ(cgroup_v2_folder(kHybrid, "4:memory:/a\n0::/b\n"), "/sys/fs/cgroup/unified/b");
}

TEST(CgroupV2Folder, InAContainerIsWhatTheMountShows) {
  const std::string part = "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n";
  EXPECT_EQ(cgroup_v2_folder(part, "0::/docker/abc\n"), "/sys/fs/cgroup/");
  EXPECT_EQ(cgroup_v2_folder(part, "0::/docker/abc/job\n"), "/sys/fs/cgroup/job");
  EXPECT_EQ(cgroup_v2_folder(part, "0::/elsewhere\n"), std::nullopt);
}

TEST(CgroupV2Folder, IsNoneWithoutCgroupV2) {
  EXPECT_EQ(
      cgroup_v2_folder("32 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", "4:memory:/\n"),
      std::nullopt);
  EXPECT_EQ(cgroup_v2_folder(kHybrid, "4:memory:/a\n"), std::nullopt);
  EXPECT_EQ(cgroup_v2_folder("", ""), std::nullopt);
}

class JobCgroupTest : public Processes {
 protected:
  // What a machine with its cgroup at path("tree") would say.
  std::string proc_of(const std::string& subtree_control) {
    std::filesystem::create_directories(path("tree/job"));
    std::filesystem::create_directories(path("proc/self"));
    std::ofstream(path("proc/self/mountinfo"))
        << "1 1 0:1 / " << path("tree") << " rw - cgroup2 cgroup2 rw\n";
    std::ofstream(path("proc/self/cgroup")) << "0::/job\n";
    std::ofstream(path("tree/job/cgroup.subtree_control")) << subtree_control;
    return path("proc");
  }
};

TEST_F(JobCgroupTest, IsNoneWhereControllersAreHandedDown) {
  EXPECT_FALSE(JobCgroup::make("9.8.7", proc_of("cpu memory\n")));
  EXPECT_FALSE(std::filesystem::exists(path("tree/job/muster-9.8.7")));
}

TEST_F(JobCgroupTest, IsNoneWhereTheKernelMakesNoFilesForIt) {
  EXPECT_FALSE(JobCgroup::make("9.8.7", proc_of("\n")));
  EXPECT_FALSE(std::filesystem::exists(path("tree/job/muster-9.8.7")));
}

TEST_F(JobCgroupTest, EmptyOnesOfProcessesThatAreGoneAreRemoved) {
  const std::string proc = proc_of("\n");
  for (const char* name : {"muster-1.2.3", "muster-71.2.3", "muster-72.2.3/muster-73.2.3",
                           "muster-74.2.3/member/deeper", "other-71.2.3"})
    std::filesystem::create_directories(path("tree/job/") + name);
  std::filesystem::create_directories(proc + "/1");
  JobCgroup::make("9.8.7", proc);
  EXPECT_TRUE(std::filesystem::exists(path("tree/job/muster-1.2.3")));
  EXPECT_FALSE(std::filesystem::exists(path("tree/job/muster-71.2.3")));
  EXPECT_FALSE(std::filesystem::exists(path("tree/job/muster-72.2.3"))) << "with one that ran within it";
  EXPECT_FALSE(std::filesystem::exists(path("tree/job/muster-74.2.3")));
  EXPECT_TRUE(std::filesystem::exists(path("tree/job/other-71.2.3")));
}

TEST_F(JobCgroupTest, G1_WhoHidesItsSessionAndItsEnvironmentIsEndedWithTheAgentToo) {
  auto guard = std::make_unique<Guard>(std::move(*Guard::start()));
  if (guard->cgroup_entrance() < 0) {
    guard->all_is_over();
    GTEST_SKIP()
        << "no cgroup (v2) can be made here: it takes one that may be written, of Linux 5.14 or later";
  }
  SpawnRequest wanted = request({"hidden-grandchild", path("hidden"), "then", "hang"});
  wanted.environment.push_back(guard->mark());
  wanted.guard_fd = guard->fd();
  wanted.cgroup_entrance = guard->cgroup_entrance();
  auto worker = std::move(*WorkerProcess::adopt(io.get_executor(), start(wanted)));
  const pid_t hidden = pid_in("hidden");
  ASSERT_EQ(read_file("/proc/" + std::to_string(hidden) + "/environ"), "");
  const auto cgroup = *cgroup_v2_folder(read_file("/proc/self/mountinfo"),
                                        read_file("/proc/" + std::to_string(hidden) + "/cgroup"));
  EXPECT_THAT(cgroup.filename().string(),
              ::testing::StartsWith("muster-" + std::to_string(::getpid()) + "."));
  guard.reset();  // as if the agent had died
  EXPECT_TRUE(comes_true([&] { return !alive(hidden); }));
  EXPECT_TRUE(comes_true([&] { return !alive(worker->pid()); }));
  EXPECT_FALSE(std::filesystem::exists(cgroup));
}

TEST_F(JobCgroupTest, AWorkerStartsAlsoWhereItCannotBeEntered) {
  SpawnRequest wanted = request({"exit", "3"});
  UniqueFd nowhere(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  wanted.cgroup_entrance = nowhere.get();
  EXPECT_EQ(end_of(wanted), ExitCause::exited(3));
}

}  // namespace
}  // namespace muster::agent
