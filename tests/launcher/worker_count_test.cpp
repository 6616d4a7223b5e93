#include "launcher/worker_count.hpp"

#include <gmock/gmock.h>

#include "tests/launcher/environment_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace muster::launcher {
namespace {

using ::testing::HasSubstr;
using Way = WorkerCountWish::Way;

WorkerCount counted(Way way, UsableResources resources) {
  const auto count = count_workers({way, 7}, resources);
  EXPECT_TRUE(count);
  return count ? *count : WorkerCount{};
}

TEST(WorkerCount, ANumberIsTakenAsItIs) {
  EXPECT_EQ(counted(Way::number, {2, {}, 0, {}}).number, 7);
  EXPECT_EQ(counted(Way::number, {2, {}, 0, {}}).derivation, "");
}

TEST(WorkerCount, K5_AQuotaBelowTheAffinityMaskCounts) {
  const auto count = counted(Way::automatic, {16, 2.0, 0, {}});
  EXPECT_EQ(count.number, 2);
  EXPECT_THAT(count.derivation, HasSubstr("cgroup quota of 2 CPUs"));
  EXPECT_EQ(counted(Way::cpu, {16, 0.5, 0, {}}).number, 1);
  EXPECT_EQ(counted(Way::cpu, {4, 8.0, 0, {}}).number, 4);
  EXPECT_EQ(counted(Way::cpu, {4, {}, 8, {}}).number, 4);
}

TEST(WorkerCount, AutoPrefersGpusThatMayBeUsed) {
  EXPECT_EQ(counted(Way::automatic, {16, {}, 8, {}}).number, 8);
  EXPECT_EQ(counted(Way::gpu, {16, {}, 8, "0,3"}).number, 2);
  EXPECT_EQ(counted(Way::automatic, {16, {}, 1, "MIG-a,MIG-b,MIG-c"}).number, 3);
  EXPECT_EQ(counted(Way::automatic, {16, {}, 8, "0,-1,2"}).number, 1);
  EXPECT_EQ(counted(Way::automatic, {16, {}, 8, ""}).number, 16) << "all hidden: as without GPUs";
}

TEST(WorkerCount, NoGpuIsSaidWithTheReason) {
  EXPECT_THAT(count_workers({Way::gpu, 0}, {4, {}, 0, {}}).error().sentence(),
              HasSubstr("there is no /dev/nvidia0"));
  EXPECT_THAT(count_workers({Way::gpu, 0}, {4, {}, 8, ""}).error().sentence(),
              HasSubstr("CUDA_VISIBLE_DEVICES"));
}

TEST(WorkerCount, IsCapped) { EXPECT_EQ(counted(Way::cpu, {10'000, {}, 0, {}}).number, 4096); }

TEST(UsableResources, K5_ReadsTheTightestQuotaOfVersion2) {
  test::TemporaryFolder folder;
  folder.write("proc/self/cgroup", "0::/pod/container\n");
  folder.write("cgroup/pod/cpu.max", "200000 100000\n");
  folder.write("cgroup/pod/container/cpu.max", "max 100000\n");
  folder.write("dev/nvidia0", "");
  folder.write("dev/nvidia11", "");
  folder.write("dev/nvidiactl", "");
  const auto resources = usable_resources(environment_of({{"CUDA_VISIBLE_DEVICES", "0"}}), folder / "cgroup",
                                          folder / "proc", folder / "dev");
  EXPECT_EQ(resources.quota_cpus, 2.0);
  EXPECT_EQ(resources.gpu_devices, 2);
  EXPECT_EQ(resources.visible_devices, "0");
  EXPECT_GE(resources.affinity_cpus, 1);
}

TEST(UsableResources, K5_ReadsTheQuotaOfVersion1InAContainer) {
  test::TemporaryFolder folder;
  folder.write("proc/self/cgroup", "3:cpu,cpuacct:/hosts/own/path\n");
  folder.write("cgroup/cpu/cpu.cfs_quota_us", "150000\n");
  folder.write("cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(
      usable_resources(environment_of({}), folder / "cgroup", folder / "proc", folder / "dev").quota_cpus,
      1.5);
  folder.write("cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(
      usable_resources(environment_of({}), folder / "cgroup", folder / "proc", folder / "dev").quota_cpus,
      std::nullopt);
}

}  // namespace
}  // namespace muster::launcher
