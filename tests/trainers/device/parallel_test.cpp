// Data-parallel and sharded training, checkpoints and evaluation on a device whose memory the processor cannot touch,
// beside the same on the CPU. Gradients travel through the host here; the groups do not tell.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/temporary_folder.hpp"
#include "tests/trainers/device/fenced_device.hpp"
#include "tests/trainers/gloo_world.hpp"
#include "trainers/data/table.hpp"
#include "trainers/optim/adam.hpp"
#include "trainers/parallel/ddp.hpp"
#include "trainers/parallel/fsdp.hpp"
#include "trainers/tensor/cross_entropy.hpp"
#include "trainers/tensor/on_device.hpp"
#include "trainers/tensor/random.hpp"
#include "trainers/training/checkpointer.hpp"
#include "trainers/training/evaluation.hpp"
#include "trainers/training/finite.hpp"
#include "worker_sdk/src/placed_group.hpp"

namespace muster::trainers {
namespace {

using muster::test::TemporaryFolder;
using test::FencedDevice;

constexpr int kRanks = 2;
constexpr int kSteps = 8;
const std::vector<std::int64_t> kWidths = {6, 9, 5};

struct Result {
  std::vector<double> losses;
  double norm = 0;
  Accuracy accuracy;
  std::vector<std::vector<float>> parameters;
};

enum class Where { cpu, fenced };
enum class How { ddp, fsdp_fp32, fsdp_bf16 };

std::unique_ptr<worker::ProcessGroup> placed(std::unique_ptr<worker::ProcessGroup> group, Device& device) {
  if (!device.accelerator()) return group;
  return worker::make_placed_group(std::move(group), nullptr, *device.accelerator());
}

double train_step(Module& model, Parallelism& parallelism, Optimizer& optimizer, Device& device, int step,
                  int rank) {
  static thread_local Tensor moved;
  moved = Tensor();
  Tensor gradient;
  Random random(5, static_cast<std::uint64_t>(step * kRanks + rank));
  Tensor batch({7, kWidths.front()});
  for (auto& value : batch.values()) value = random.uniform(-1, 1);
  std::vector<std::uint8_t> labels(7);
  for (auto& label : labels) label = static_cast<std::uint8_t>(random.below(5));
  parallelism.raise_flag(step == 3 && rank == 1);
  const double loss = softmax_cross_entropy(model.forward(on_device(device, batch, moved)), labels, gradient);
  model.backward(gradient, InputGradient::unwanted);
  parallelism.finish_gradients();
  EXPECT_EQ(parallelism.flag_was_raised(), step == 3) << "step " << step;
  optimizer.step();
  return loss;
}

ShardingOptions sharding(How how) {
  const auto type = how == How::fsdp_bf16 ? worker::ElementType::bf16 : worker::ElementType::f32;
  return {.precision = {.parameters = type, .reduction = type}, .min_num_params = 1};
}

/// Trains, saves after half of the steps, damages the state, resumes from there.
Result train(Where where, How how, const std::filesystem::path& folder) {
  Result result;
  FencedDevice fenced[kRanks];
  GlooWorld world(1, kRanks);
  world.run([&](RankGroups& groups) {
    const int rank = groups.world->rank();
    auto& device = where == Where::cpu ? cpu_device() : fenced[rank];
    auto group = placed(std::move(groups.world), device);
    auto alone = placed(std::move(groups.alone), device);
    auto model = multi_layer_perceptron(kWidths, 1);
    const auto parameters = model.parameters();
    for (auto* parameter : parameters) parameter->move_to(device);
    std::unique_ptr<DataParallel> ddp;
    std::unique_ptr<FullySharded> fsdp;
    if (how == How::ddp)
      ddp = std::make_unique<DataParallel>(parameters, *group,
                                           BucketLimits{.first_bytes = 64, .other_bytes = 64});
    else
      fsdp = std::make_unique<FullySharded>(model, ShardingGroups{.shard = *group, .replicate = *alone},
                                            sharding(how));
    Module& module = fsdp ? static_cast<Module&>(*fsdp) : model;
    Parallelism& parallelism = fsdp ? static_cast<Parallelism&>(*fsdp) : *ddp;
    Adam optimizer(fsdp ? fsdp->parameters() : parameters);
    const auto shards = fsdp ? fsdp->shards() : whole_parameters(parameters, rank);
    Report report({.program = "test", .speaks = false, .metrics_file = {}});
    Checkpointer checkpointer({.folder = folder}, {.model = "test", .samples = 1},
                              state_shards(shards, optimizer), optimizer, *group, report);
    TrainingState state;
    for (int step = 0; step < kSteps; ++step) {
      const double loss = train_step(module, parallelism, optimizer, device, step, rank);
      if (rank == 0) result.losses.push_back(loss);
      state.step = step + 1;
      if (step + 1 == kSteps / 2) {
        checkpointer.save(state);
        checkpointer.finish();
        EXPECT_EQ(checkpointer.saved_step(), state.step);
        for (auto* parameter : optimizer.parameters())
          parameter->value.device().scale(parameter->value.data(), 3, parameter->value.count());
        TrainingState resumed;
        checkpointer.resume(resumed);
        EXPECT_EQ(resumed.step, state.step);
      }
    }
    const double norm = parallelism.clip_gradients(1e-3);
    const auto data = TableDataset::random(101, kWidths.front(), kWidths.back(), 2);
    const auto accuracy = evaluate(module, data, *group, device);
    const auto keep = [&] {
      if (rank != 0) return;
      result.norm = norm;
      result.accuracy = accuracy;
      for (auto* parameter : parameters) {
        const auto host = parameter->value.clone_on(cpu_device());
        result.parameters.emplace_back(host.values().begin(), host.values().end());
        EXPECT_TRUE(all_finite(parameter->value));
      }
    };
    fsdp ? fsdp->with_whole_parameters(keep) : keep();
  });
  return result;
}

void expect_alike(How how, double tolerance) {
  const TemporaryFolder folder;
  const auto expected = train(Where::cpu, how, folder / "cpu");
  const auto actual = train(Where::fenced, how, folder / "fenced");
  ASSERT_EQ(actual.losses.size(), expected.losses.size());
  for (std::size_t i = 0; i < expected.losses.size(); ++i)
    EXPECT_NEAR(actual.losses[i], expected.losses[i], tolerance * expected.losses[i]) << "step " << i;
  EXPECT_NEAR(actual.norm, expected.norm, 10 * tolerance);
  EXPECT_EQ(actual.accuracy.total, 101);
  EXPECT_NEAR(static_cast<double>(actual.accuracy.correct), static_cast<double>(expected.accuracy.correct),
              2);
  ASSERT_EQ(actual.parameters.size(), expected.parameters.size());
  for (std::size_t p = 0; p < expected.parameters.size(); ++p)
    for (std::size_t i = 0; i < expected.parameters[p].size(); ++i)
      ASSERT_NEAR(actual.parameters[p][i], expected.parameters[p][i], 10 * tolerance) << p << ", " << i;
}

TEST(DeviceTraining, DataParallelAndItsCheckpointsNeverTouchTheDevicesMemory) {
  expect_alike(How::ddp, 1e-4);
}

TEST(DeviceTraining, ShardedAndItsCheckpointsNeverTouchTheDevicesMemory) {
  expect_alike(How::fsdp_fp32, 1e-4);
}

/// A bfloat16 that rounds the other way is 1/256 off.
TEST(DeviceTraining, MixedPrecisionNeverTouchesTheDevicesMemory) { expect_alike(How::fsdp_bf16, 1e-2); }

TEST(DeviceTrainingDeathTest, TheFenceHolds) {
  FencedDevice device;
  Tensor tensor({3}, device);
  tensor.write(1, 4);
  EXPECT_EQ(tensor.read(1), 4);
  EXPECT_DEATH(*static_cast<volatile float*>(tensor.data()) = 1, "");
}

TEST(DeviceTraining, ANumberThatIsNoneIsFoundOnTheDevice) {
  FencedDevice device;
  Parameter parameter("0.weight", {2, 3});
  parameter.move_to(device);
  parameter.value.write(4, NAN);
  EXPECT_FALSE(all_finite(parameter.value));
  EXPECT_EQ(first_not_finite({}, {&parameter}, {}), "tensor 0.weight has nan at [1, 1]");
}

}  // namespace
}  // namespace muster::trainers
