// Trainers that are asked for a GPU where there is none: one sentence, and an exit code by which nothing is restarted.
#include <gmock/gmock.h>

#include "tests/trainers/trainer_process.hpp"
#include "trainers/device/open_device.hpp"

namespace muster::trainers {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// Why this machine's GPU cannot be had; empty if it can.
std::string reason() {
  try {
    open_device("cuda", 0);
  } catch (const std::invalid_argument& why) {
    return why.what();
  }
  return "";
}

class MissingGpu : public testing::TestWithParam<std::string> {};

TEST_P(MissingGpu, IsOneSentenceAndExitCode2) {
  const auto why = reason();
  if (why.empty()) GTEST_SKIP() << "there is a GPU here";
  const TemporaryFolder folder;
  TrainerProcess trainer(folder.path(), {"--device=cuda"}, {.program = GetParam()});
  EXPECT_EQ(trainer.exit_code(), 2);
  EXPECT_EQ(trainer.errors(), "rank 0: " + why + "\n");
  EXPECT_EQ(trainer.output(), "");
  EXPECT_THAT(why, StartsWith("--device=cuda: "));
  EXPECT_THAT(why, HasSubstr("; --device=cpu needs none"));
}

INSTANTIATE_TEST_SUITE_P(Trainers, MissingGpu, testing::Values("ddp_mnist", "fsdp_mlp", "lr_scaling"),
                         [](const auto& tested) { return tested.param; });

TEST(MissingGpuOptions, NcclNeedsAGpu) {
  const TemporaryFolder folder;
  TrainerProcess trainer(folder.path(), {"--backend=nccl"});
  EXPECT_EQ(trainer.exit_code(), 2);
  EXPECT_THAT(trainer.errors(), HasSubstr("--backend: nccl is for GPUs: it needs --device=cuda"));
}

}  // namespace
}  // namespace muster::trainers
