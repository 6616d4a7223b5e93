// That the comparison holds for a second implementation, finds every fault, and, where there is a GPU, holds for CUDA.
#include "tests/trainers/device/comparison.hpp"

#include <gmock/gmock.h>

#include "tests/trainers/device/broken_device.hpp"
#include "trainers/device/open_device.hpp"

namespace muster::trainers::test {
namespace {

TEST(DeviceComparison, PlainLoopsComputeAsTheCpuDoes) {
  FencedDevice plain;
  EXPECT_EQ(text_of(compare_operations(plain)), "");
}

TEST(DeviceComparison, PlainLoopsTrainAsTheCpuDoes) {
  FencedDevice plain;
  EXPECT_EQ(text_of(compare_training(plain)), "");
}

class BrokenOperation : public testing::TestWithParam<std::string> {};

TEST_P(BrokenOperation, IsFound) {
  BrokenDevice broken(GetParam());
  std::vector<std::string> found;
  for (const auto& difference : compare_operations(broken, Sizes::small))
    found.push_back(difference.operation);
  EXPECT_THAT(found, testing::Contains(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Each, BrokenOperation, testing::ValuesIn(compared_operations()),
                         [](const auto& tested) { return tested.param; });

TEST(DeviceComparison, AFaultInAnOptimizerShowsInTraining) {
  BrokenDevice broken("multiply");
  EXPECT_NE(text_of(compare_training(broken)), "");
}

/// The test binary lies beside the module.
TEST(CudaDevice, ComputesAndTrainsAsTheCpuDoes) {
  Device* device = nullptr;
  try {
    device = &open_device("cuda", 0);
  } catch (const std::invalid_argument& why) {
    GTEST_SKIP() << why.what();
  }
  EXPECT_EQ(text_of(compare_operations(*device)), "");
  EXPECT_EQ(text_of(compare_training(*device)), "");
}

}  // namespace
}  // namespace muster::trainers::test
