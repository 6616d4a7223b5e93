#include "agent/placement/visible_devices.hpp"

#include "tests/agent/placement/machine.hpp"

namespace muster::agent {
namespace {

using Visible = std::vector<std::optional<std::string>>;

const std::vector<Gpu> four = {
    {"0", "GPU-aa", "", {}}, {"1", "GPU-bb", "", {}}, {"2", "GPU-cc", "", {}}, {"3", "GPU-dd", "", {}}};

Visible visible(const DeviceWish& wish, int local_workers, const std::vector<Gpu>& machine = four) {
  const auto devices = choose_devices(wish, machine);
  EXPECT_TRUE(devices) << devices.error().sentence();
  const auto found = visible_to_workers(wish, *devices, local_workers);
  EXPECT_TRUE(found) << found.error().sentence();
  return found ? *found : Visible{};
}
std::string refusal(const DeviceWish& wish, int local_workers, const std::vector<Gpu>& machine = four) {
  const auto devices = choose_devices(wish, machine);
  if (!devices) return devices.error().sentence();
  const auto found = visible_to_workers(wish, *devices, local_workers);
  return found ? "" : found.error().sentence();
}

TEST(VisibleDevices, NothingWishedIsNothingChanged) {
  EXPECT_EQ(visible({}, 2), (Visible{{}, {}}));
  EXPECT_EQ(visible({{}, "2,3", false}, 2), (Visible{{}, {}}));
}

TEST(VisibleDevices, K3_IsolatedWorkersSeeExactlyTheirEntryOfAnInheritedList) {
  EXPECT_EQ(visible({{}, "GPU-a,GPU-b,3", true}, 3), (Visible{"GPU-a", "GPU-b", "3"}));
  EXPECT_EQ(visible({{}, "MIG-x, MIG-y", true}, 2), (Visible{"MIG-x", "MIG-y"}));
  EXPECT_EQ(visible({{}, {}, true}, 2), (Visible{"0", "1"}));
}

TEST(VisibleDevices, K3_AChoiceCountsWithinAnInheritedList) {
  EXPECT_EQ(visible({"0,2", "GPU-aa,GPU-bb,3", false}, 1), (Visible{"GPU-aa,3"}));
  EXPECT_EQ(visible({"2,0", "GPU-aa,GPU-bb,3", true}, 2), (Visible{"3", "GPU-aa"}));
  EXPECT_EQ(visible({"GPU-dd", "GPU-aa,GPU-bb,3", false}, 1), (Visible{"3"}))
      << "the machine knows that they are one";
  EXPECT_EQ(visible({"1,3", {}, false}, 2), (Visible{"1,3", "1,3"}));
}

TEST(VisibleDevices, AnInheritedListEndsWhereCudaEndsIt) {
  EXPECT_EQ(visible({{}, "1,-1,2", true}, 1), (Visible{"1"}));
  EXPECT_THAT(refusal({{}, "1,-1,2", true}, 2), HasSubstr("2 workers, 1 GPUs"));
  EXPECT_THAT(refusal({{}, "", true}, 1), HasSubstr("CUDA_VISIBLE_DEVICES hides all of them"));
}

TEST(VisibleDevices, K3_SlicesAreNamedByTheirUuid) {
  const std::vector<Gpu> sliced = {
      {"0", "GPU-aa", "", {}}, {"MIG-1", "MIG-1", "", {}}, {"MIG-2", "MIG-2", "", {}}};
  EXPECT_EQ(visible({"1,2", {}, true}, 2, sliced), (Visible{"MIG-1", "MIG-2"}));
}

TEST(VisibleDevices, WithoutAnyKnownGpuTheLocalRankIsTaken) {
  EXPECT_EQ(visible({{}, {}, true}, 2, {}), (Visible{"0", "1"})) << "as torchrun's --virtual-local-rank";
}

TEST(VisibleDevices, MistakesAreNamed) {
  EXPECT_THAT(refusal({"4", {}, false}, 1), HasSubstr("--gpus: there is no GPU 4; they are 0 to 3"));
  EXPECT_THAT(refusal({"GPU-zz", {}, false}, 1), HasSubstr("there is no GPU GPU-zz"));
  EXPECT_THAT(refusal({"0,0", {}, false}, 1), HasSubstr("GPU 0 is named twice"));
  EXPECT_THAT(refusal({"0", {}, false}, 1, {}), HasSubstr("this process may use none"));
  EXPECT_THAT(refusal({{}, {}, true}, 5), HasSubstr("5 workers, 4 GPUs"));
}

}  // namespace
}  // namespace muster::agent
