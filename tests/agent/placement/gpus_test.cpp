#include "agent/placement/gpus.hpp"

#include "tests/agent/placement/machine.hpp"

namespace muster::agent {
namespace {

TEST(Gpus, NvmlIsAskedFirstAndCountsSlicesInPlaceOfTheGpuThatIsCut) {
  Machine machine;
  machine.device_file("nvidia0");
  const auto gpus = find_gpus({machine.root(), MUSTER_FAKE_NVML});
  ASSERT_EQ(gpus.size(), 3u);
  EXPECT_EQ(gpus[0], (Gpu{"0", "GPU-0000", "0000:3b:00.0", {}}));
  EXPECT_EQ(gpus[1], (Gpu{"MIG-1-0", "MIG-1-0", "0000:af:00.0", {}}));
  EXPECT_EQ(gpus[2], (Gpu{"MIG-1-1", "MIG-1-1", "0000:af:00.0", {}}));
}

TEST(Gpus, WithoutNvmlTheDriverIsAskedInPciOrder) {
  Machine machine;
  machine.gpu_of_driver("0000:af:00.0", "GPU-b", 1);
  machine.gpu_of_driver("0000:3b:00.0", "GPU-a", -1);
  machine.device_file("nvidia0");
  for (const char* nvml : {"", "libno-such-library.so.1"}) {
    const auto gpus = find_gpus({machine.root(), nvml});
    ASSERT_EQ(gpus.size(), 2u);
    EXPECT_EQ(gpus[0], (Gpu{"0", "GPU-a", "0000:3b:00.0", 0})) << "no node is node 0, as for torchrun";
    EXPECT_EQ(gpus[1], (Gpu{"1", "GPU-b", "0000:af:00.0", 1}));
  }
}

TEST(Gpus, AtLeastTheDeviceFilesAreCounted) {
  Machine machine;
  for (const char* name : {"nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "null"})
    machine.device_file(name);
  const auto gpus = find_gpus({machine.root(), ""});
  ASSERT_EQ(gpus.size(), 2u);
  EXPECT_EQ(gpus[1], (Gpu{"1", "", "", {}}));
}

TEST(Gpus, AMachineWithoutAnyHasNone) {
  const Machine machine;
  EXPECT_THAT(find_gpus({machine.root(), ""}), IsEmpty());
}

}  // namespace
}  // namespace muster::agent
