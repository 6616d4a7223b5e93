#include "trainers/device/open_device.hpp"

#include <gmock/gmock.h>

#include <fstream>

#include "tests/support/temporary_folder.hpp"
#include "trainers/cuda/launch.hpp"
#include "trainers/device/choose_gpu.hpp"

namespace muster::trainers {
namespace {

using muster::test::TemporaryFolder;
using testing::AllOf;
using testing::HasSubstr;

std::string complaint(const std::function<void()>& open) {
  try {
    open();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  ADD_FAILURE() << "opened";
  return "";
}

TEST(OpenDevice, TheCpuIsAlwaysThere) { EXPECT_EQ(&open_device("cpu", 3), &cpu_device()); }

TEST(OpenDevice, AnUnknownNameIsRefused) {
  EXPECT_THAT(complaint([] { open_device("tpu", 0); }), HasSubstr("--device=tpu: cpu or cuda is expected"));
}

TEST(OpenDevice, WithoutAModuleItSaysThatCudaWasLeftOut) {
  EXPECT_EQ(complaint([] { open_module("/nowhere/libmuster_cuda.so", 0); }),
            "--device=cuda: there is no /nowhere/libmuster_cuda.so: this muster was built without CUDA; "
            "--device=cpu "
            "needs none");
}

TEST(OpenDevice, AFileThatIsNoLibraryIsNamed) {
  const TemporaryFolder folder;
  std::ofstream(folder / "libmuster_cuda.so") << "no library\n";
  EXPECT_THAT(complaint([&] { open_module(folder / "libmuster_cuda.so", 0); }),
              AllOf(HasSubstr("cannot be loaded"), HasSubstr("libmuster_cuda.so")));
}

TEST(OpenDevice, AnotherLibraryIsNoModule) {
  const std::string path = std::string(MUSTER_BIN_DIR) + "/libtest_no_module.so";
  EXPECT_THAT(complaint([&] { open_module(path, 0); }),
              AllOf(HasSubstr("is no module of muster's"), HasSubstr("muster_device_module")));
}

TEST(OpenDevice, AModuleOfAnotherBuildIsRefusedBeforeItIsCalled) {
  const std::string path = std::string(MUSTER_BIN_DIR) + "/libtest_other_module.so";
  EXPECT_THAT(
      complaint([&] { open_module(path, 0); }),
      AllOf(HasSubstr("is of another build (version 1000000, expected"), HasSubstr("build both anew")));
}

TEST(OpenDevice, TheModulesOwnReasonIsPassedOn) {
  const std::string path = std::string(MUSTER_BIN_DIR) + "/libtest_refusing_module.so";
  EXPECT_EQ(complaint([&] { open_module(path, 5); }),
            "--device=cuda: no device for local rank 5 in this test; --device=cpu needs none");
}

#ifdef TEST_EMULATED_CUDA
const std::string kEmulated = std::string(MUSTER_BIN_DIR) + "/libtest_emulated_cuda.so";

TEST(EmulatedCuda, AWorkersDeviceIsItsLocalRanks) {
  EXPECT_EQ(open_module(kEmulated, 1).name(), "cuda:1 (emulated)");
  EXPECT_THAT(complaint([] { open_module(kEmulated, 2); }),
              HasSubstr("--device=cuda: LOCAL_RANK is 2, and 2 GPUs are visible here"));
}

TEST(EmulatedCuda, AFailedCallIsNamedWithItsPlaceAndDevice) {
  auto& device = open_module(kEmulated, 1);
  try {
    device.allocate(std::int64_t{1} << 40);
    FAIL() << "it has so much memory";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(),
                AllOf(testing::StartsWith("cuda:1: cudaMalloc: out of memory (cudaErrorMemoryAllocation), "
                                          "at trainers/cuda/queue.cpp:"),
                      HasSubstr("(4398046511104 bytes)")));
  }
}
#endif

TEST(ChooseGpu, TheLocalRankCountsAmongTheVisibleOnes) {
  EXPECT_EQ(choose_gpu(8, 3, {}).index, 3);
  EXPECT_EQ(choose_gpu(8, 3, {}).problem, "");
  EXPECT_EQ(choose_gpu(2, 1, "4,5").index, 1);
}

TEST(ChooseGpu, ASingleOneThatTheLauncherShowsIsTaken) {
  const auto choice = choose_gpu(1, 3, "GPU-8f2c");
  EXPECT_EQ(choice.index, 0);
  EXPECT_EQ(choice.problem, "");
}

TEST(ChooseGpu, TooFewAreRefusedWithWhatIsVisible) {
  EXPECT_THAT(choose_gpu(1, 1, {}).problem, HasSubstr("LOCAL_RANK is 1, and 1 GPU is visible here;"));
  EXPECT_THAT(choose_gpu(2, 2, "0,1").problem,
              HasSubstr("2 GPUs are visible here (CUDA_VISIBLE_DEVICES=0,1); start as many workers"));
}

TEST(ChooseGpu, NoneIsSaidToBeNone) {
  EXPECT_EQ(choose_gpu(0, 0, {}).problem, "no GPU is visible here");
  EXPECT_EQ(choose_gpu(0, 0, "").problem, "no GPU is visible here (CUDA_VISIBLE_DEVICES=)");
}

TEST(LaunchGeometry, EveryNumberHasAThreadOrATurn) {
  static_assert(cuda::launch_for(0).blocks == 1, "a grid of none is an error");
  static_assert(cuda::launch_for(1).blocks == 1);
  static_assert(cuda::launch_for(256).blocks == 1);
  static_assert(cuda::launch_for(257).blocks == 2);
  static_assert(cuda::launch_for(std::int64_t{1} << 40).blocks == cuda::max_blocks);
  static_assert(cuda::launch_for(INT64_MAX).blocks == cuda::max_blocks, "nothing overflows");
  for (const std::int64_t count : {1, 255, 256, 257, 1000, 65537}) {
    const auto launch = cuda::launch_for(count);
    EXPECT_GE(static_cast<std::int64_t>(launch.blocks) * launch.threads, count);
    EXPECT_LT(static_cast<std::int64_t>(launch.blocks - 1) * launch.threads, count) << "no block too many";
  }
}

TEST(LaunchGeometry, OneBlockCanAddUpAllPartialSums) {
  for (const std::int64_t count : {std::int64_t{0}, std::int64_t{1000}, std::int64_t{1} << 40})
    EXPECT_LE(cuda::launch_for_sum(count).blocks, cuda::threads_per_block);
  EXPECT_EQ(cuda::threads_per_block & (cuda::threads_per_block - 1), 0U) << "halved again and again";
}

}  // namespace
}  // namespace muster::trainers
