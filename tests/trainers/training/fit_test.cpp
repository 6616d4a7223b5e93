#include "trainers/training/fit.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "muster/worker/permanent_error.hpp"
#include "tests/trainers/thread_group.hpp"
#include "tests/trainers/tiny_mnist.hpp"
#include "trainers/optim/adam.hpp"
#include "trainers/parallel/ddp.hpp"
#include "trainers/tensor/sequential.hpp"

namespace muster::trainers {
namespace {

constexpr std::uint32_t kTrainSamples = 200;
constexpr std::uint32_t kTestSamples = 61;

struct Killed : std::runtime_error {
  Killed() : std::runtime_error("killed, as the test wanted") {}
};

/// A model that lets its rank die in the backward pass of some step.
class Mortal final : public Module {
 public:
  Mortal(Module& model, std::int64_t dies_at, std::int64_t spoil_at)
      : model_(model), steps_left_(dies_at), left_to_spoil_(spoil_at) {}
  Tensor& forward(Tensor& input) override {
    if (left_to_spoil_-- == 0) model_.parameters()[2]->value.row(1)[2] = std::nanf("");
    return model_.forward(input);
  }
  Tensor& backward(Tensor& output_gradient, InputGradient wanted) override {
    if (steps_left_-- == 0) throw Killed();
    return model_.backward(output_gradient, wanted);
  }
  std::vector<Parameter*> parameters() override { return model_.parameters(); }

 private:
  Module& model_;
  std::int64_t steps_left_;
  std::int64_t left_to_spoil_;
};

struct RunResult {
  std::vector<float> parameters = {};
  double learning_rate = 0;
  Accuracy accuracy;
  TrainingState state;
};

struct RunPlan {
  int world_size = 2;
  FitOptions fit = {.epochs = 2, .batch_size = 8, .seed = 3, .checkpoint_every_steps = 7, .max_steps = 0};
  std::filesystem::path checkpoints = {};
  std::filesystem::path metrics = {};
  bool in_background = false;
  std::int64_t dies_at = -1;
  std::int64_t spoil_at = -1;  ///< a parameter becomes NaN before this step's forward pass, counted from 0
  std::function<bool(int rank, std::int64_t step)> asked_to_save = [](int, std::int64_t) { return false; };
};

/// A NaN is the same as itself here.
bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class FitTest : public testing::Test {
 protected:
  FitTest() {
    write_tiny_mnist(data_.path(), kTrainSamples, kTestSamples);
    train_.emplace(ImageDataset::load(data_.path(), Split::train));
    test_.emplace(ImageDataset::load(data_.path(), Split::test));
  }

  RunResult train_on(worker::ProcessGroup& group, const RunPlan& plan) {
    auto inner = multi_layer_perceptron({784, 16, 10}, plan.fit.seed);
    Mortal model(inner, plan.dies_at, plan.spoil_at);
    Adam optimizer(model.parameters(), {.learning_rate = 3e-3});
    Report report({.program = "test",
                   .speaks = group.rank() == 0 && !plan.metrics.empty(),
                   .quiet = true,
                   .metrics_file = plan.metrics});
    const RunIdentity identity{.model = "m", .samples = kTrainSamples, .seed = plan.fit.seed};
    Checkpointer checkpointer({.folder = plan.checkpoints, .in_background = plan.in_background}, identity,
                              state_shards(whole_parameters(model.parameters(), group.rank()), optimizer),
                              optimizer, group, report);
    std::int64_t steps_done = 0;
    const Supervision supervision{
        .progress = [&](std::int64_t step) { steps_done = step; },
        .asked_to_save = [&] { return plan.asked_to_save(group.rank(), steps_done); }};
    DataParallel ddp(model.parameters(), group);
    Fit fit({model, ddp, optimizer, group, *train_, *test_, checkpointer, report, supervision}, plan.fit);
    fit.run();
    if (fit.drained()) {
      EXPECT_EQ(fit.saved_step(), plan.checkpoints.empty() ? 0 : fit.state().step);
    }
    RunResult result{.learning_rate = optimizer.learning_rate,
                     .accuracy = evaluate(model, *test_, group),
                     .state = fit.state()};
    for (auto* parameter : model.parameters()) {
      const auto values = parameter->value.values();
      result.parameters.insert(result.parameters.end(), values.begin(), values.end());
    }
    return result;
  }

  /// Rank 0's result; every rank's must be the same.
  RunResult run(const RunPlan& plan) {
    ThreadWorld world(plan.world_size);
    std::vector<RunResult> results(static_cast<std::size_t>(plan.world_size));
    world.run(
        [&](ThreadGroup& group) { results[static_cast<std::size_t>(group.rank())] = train_on(group, plan); });
    for (const auto& result : results) {
      EXPECT_TRUE(same_bits(result.parameters, results[0].parameters));
      EXPECT_EQ(result.accuracy.correct, results[0].accuracy.correct);
    }
    return results[0];
  }

  TemporaryFolder data_;
  TemporaryFolder scratch_;
  std::optional<ImageDataset> train_;
  std::optional<ImageDataset> test_;
};

TEST_F(FitTest, Learns) {
  RunPlan plan;
  plan.fit.epochs = 6;
  const auto result = run(plan);
  EXPECT_EQ(result.accuracy.total, kTestSamples);
  EXPECT_GT(result.accuracy.fraction(), 0.9);
  EXPECT_EQ(result.state.epoch, 6);
  EXPECT_EQ(result.state.step, 6 * 13);  // 200 samples / 2 workers / 8, the last batch of 4
}

TEST_F(FitTest, TheSameRunGivesTheSameBits) { EXPECT_EQ(run({}).parameters, run({}).parameters); }

TEST_F(FitTest, KilledAndResumedGivesTheSameBits) {
  const auto whole = run({}).parameters;
  // Before the first checkpoint, after it, around the epoch's end, in the last step.
  for (std::int64_t dies_at : {0, 7, 12, 13, 25}) {
    SCOPED_TRACE(dies_at);
    RunPlan plan;
    plan.checkpoints = scratch_ / std::to_string(dies_at);
    plan.dies_at = dies_at;
    EXPECT_THROW(run(plan), Killed);
    plan.dies_at = -1;
    ASSERT_EQ(run(plan).parameters, whole);
  }
}

TEST_F(FitTest, D12_AskedToSaveAllRanksStopAfterTheSameStepAndNoStepIsLost) {
  const auto whole = run({}).parameters;
  // In the middle, in the last step of an epoch, at the very end; only rank 1 is asked.
  for (const std::int64_t asked_at : {0, 5, 12, 13, 25}) {
    SCOPED_TRACE(asked_at);
    RunPlan plan;
    plan.checkpoints = scratch_ / std::to_string(asked_at);
    plan.asked_to_save = [&](int rank, std::int64_t step) { return rank == 1 && step >= asked_at; };
    EXPECT_EQ(run(plan).state.step, asked_at + 1);
    plan.asked_to_save = [](int, std::int64_t) { return false; };
    ASSERT_EQ(run(plan).parameters, whole);
  }
}

TEST_F(FitTest, WhenTheMetricsFileTakesNoMoreAllRanksStopForGoodAndNoStepIsLost) {
  const auto whole = run({}).parameters;
  RunPlan plan;
  plan.checkpoints = scratch_ / "full";
  plan.metrics = "/dev/full";
  try {
    run(plan);
    FAIL();
  } catch (const worker::PermanentError& error) {
    EXPECT_STREQ(
        error.what(),
        "--metrics-file /dev/full: cannot be written: No space left on device (ENOSPC); training "
        "stopped after step 2, nothing is lost: it is saved, and once there is room the same command "
        "goes on from it");
  }
  plan.metrics.clear();
  EXPECT_EQ(run(plan).parameters, whole);
}

TEST_F(FitTest, WithoutCheckpointsTrainingGoesOnWhenTheMetricsFileTakesNoMore) {
  RunPlan plan;
  plan.metrics = "/dev/full";
  EXPECT_EQ(run(plan).parameters, run({}).parameters);
}

TEST_F(FitTest, AskedToSaveWithoutCheckpointsItLeavesAtTheStepsEdge) {
  RunPlan plan;
  plan.asked_to_save = [](int, std::int64_t step) { return step >= 3; };
  EXPECT_EQ(run(plan).state.step, 4);
}

TEST_F(FitTest, WorldsOfAnySizeAgreeAtTheSameGlobalBatch) {
  const auto alone = run({.world_size = 1, .fit = {.epochs = 2, .batch_size = 40, .seed = 3}}).parameters;
  for (int size : {2, 4}) {
    SCOPED_TRACE(size);
    const auto parameters =
        run({.world_size = size, .fit = {.epochs = 2, .batch_size = 40 / size, .seed = 3}}).parameters;
    ASSERT_EQ(parameters.size(), alone.size());
    for (std::size_t i = 0; i < alone.size(); ++i) ASSERT_NEAR(parameters[i], alone[i], 1e-4);
  }
}

TEST_F(FitTest, WithTheGlobalBatchKeptAWorldOfAnySizeTrainsTheSame) {
  // 200 samples in batches of 48: no world here divides them. One worker of two passes, then worlds of 3, 2 and 4.
  RunPlan plan;
  plan.world_size = 1;
  plan.fit.batch_size = 48;
  plan.fit.keep = Keep::global_batch;
  const auto alone = run(plan);
  EXPECT_EQ(alone.state.step, 10);
  plan.checkpoints = scratch_ / "kept";
  plan.world_size = 3;
  plan.fit.batch_size = 16;
  for (const auto& [size, steps] : {std::pair(3, 2), std::pair(2, 5), std::pair(4, 0)}) {
    plan.world_size = size;
    plan.fit.max_steps = steps;
    const auto result = run(plan);
    EXPECT_EQ(result.state.global_batch, 48);
    if (steps > 0) {
      EXPECT_EQ(result.state.step, steps);
      continue;
    }
    EXPECT_EQ(result.state.step, 10);
    ASSERT_EQ(result.parameters.size(), alone.parameters.size());
    for (std::size_t i = 0; i < alone.parameters.size(); ++i)
      ASSERT_NEAR(result.parameters[i], alone.parameters[i], 1e-4);
  }
}

TEST_F(FitTest, TheRateFollowsTheWorldsSize) {
  RunPlan plan;
  plan.checkpoints = scratch_ / "rate";
  plan.fit.schedule = ScheduleOptions{.rate = 1e-3, .scaling = RateScaling::linear, .reference_batch = 8};
  plan.fit.max_steps = 2;
  EXPECT_DOUBLE_EQ(run(plan).learning_rate, 2e-3);
  plan.world_size = 4;
  plan.fit.max_steps = 4;
  EXPECT_DOUBLE_EQ(run(plan).learning_rate, 4e-3);
}

TEST_F(FitTest, PrefetchingAndSavingInTheBackgroundChangeNoBit) {
  const auto whole = run({}).parameters;
  RunPlan plan;
  plan.fit.prefetch = 2;
  plan.in_background = true;
  plan.fit.checkpoint_every_steps = 2;
  plan.checkpoints = scratch_ / "background";
  plan.dies_at = 15;
  EXPECT_THROW(run(plan), Killed);
  plan.dies_at = -1;
  EXPECT_EQ(run(plan).parameters, whole);
}

TEST_F(FitTest, TheAuditProvesThatEverySampleWasUsedOnceOverKillsAndRescales) {
  RunPlan plan;
  plan.checkpoints = scratch_ / "checkpoints";
  plan.fit.audit_folder = scratch_ / "audit";
  for (const auto& [size, dies_at] : {std::pair(2, 9), std::pair(3, 4), std::pair(4, -1)}) {
    plan.world_size = size;
    plan.dies_at = dies_at;
    if (dies_at < 0) {
      run(plan);
    } else {
      EXPECT_THROW(run(plan), Killed);
    }
  }
  auto files = read_audit(plan.fit.audit_folder);
  EXPECT_EQ(files.size(), 2U + 3U + 4U);
  const auto verdict = check_audit(files);
  EXPECT_THAT(verdict.faults, testing::IsEmpty());
  EXPECT_EQ(verdict.complete_epochs, 2);
  files.pop_back();
  EXPECT_THAT(check_audit(files).faults, testing::Not(testing::IsEmpty()));
}

/// What the run of a model with one bad parameter throws.
std::string complaint(const std::function<void()>& call) {
  try {
    call();
  } catch (const worker::PermanentError& error) {
    return error.what();
  }
  return "nothing";
}

TEST_F(FitTest, ALossThatIsNoNumberStopsWithStepRankAndTensor) {
  RunPlan plan;
  plan.world_size = 1;
  plan.spoil_at = 3;
  plan.checkpoints = scratch_ / "spoilt";
  plan.fit.checkpoint_every_steps = 1;
  EXPECT_EQ(complaint([&] { run(plan); }),
            "step 4: the loss of rank 0 is nan: tensor 2.weight has nan at [1, 2]; --allow-nan goes on all "
            "the same");
  plan.spoil_at = -1;
  plan.fit.max_steps = 3;
  EXPECT_EQ(run(plan).state.step, 3) << "nothing that is not finite was saved";
  plan.fit.max_steps = 6;
  plan.spoil_at = 0;
  plan.fit.not_finite = NotFinite::is_allowed;
  EXPECT_EQ(run(plan).state.step, 6);
}

TEST_F(FitTest, GoesOnAtAnotherWorldSize) {
  RunPlan plan;
  plan.checkpoints = scratch_ / "rescale";
  plan.dies_at = 10;
  EXPECT_THROW(run(plan), Killed);  // step 7 is saved: 112 samples of 200
  plan.dies_at = -1;
  plan.world_size = 4;
  const auto result = run(plan);
  EXPECT_EQ(result.state.epoch, 2);
  EXPECT_EQ(result.state.step, 7 + 3 + 7);  // 88 left: 32 + 32 + 24; then 200 / 32
}

TEST_F(FitTest, StopsAtTheStepLimitAndGoesOnFromThere) {
  RunPlan plan;
  plan.checkpoints = scratch_ / "limit";
  plan.fit.max_steps = 5;
  const auto stopped = run(plan);
  EXPECT_EQ(stopped.state.step, 5);
  EXPECT_EQ(stopped.state.position, 80);
  plan.fit.max_steps = 0;
  EXPECT_EQ(run(plan).parameters, run({}).parameters);
}

TEST_F(FitTest, ANewerCheckpointOfAnotherRunIsSkipped) {
  RunPlan other;
  other.checkpoints = scratch_ / "of-another";
  other.fit.seed = 4;
  other.fit.max_steps = 6;
  run(other);
  RunPlan plan;
  plan.checkpoints = scratch_ / "own";
  plan.fit.max_steps = 5;
  run(plan);
  std::filesystem::copy(other.checkpoints / "step-000000000006-generation-1-round-0",
                        plan.checkpoints / "step-000000000006-generation-1-round-0");
  plan.fit.max_steps = 0;
  EXPECT_EQ(run(plan).parameters, run({}).parameters);
}

TEST_F(FitTest, AFinishedRunIsNotTrainedAgain) {
  RunPlan plan;
  plan.checkpoints = scratch_ / "finished";
  const auto first = run(plan);
  plan.dies_at = 0;
  EXPECT_EQ(run(plan).parameters, first.parameters);
}

TEST_F(FitTest, AnotherRunsCheckpointIsRefusedOnEveryRankAndKept) {
  RunPlan plan;
  plan.checkpoints = scratch_ / "other";
  run(plan);
  plan.fit.seed = 4;
  ThreadWorld world(2);
  world.run([&](ThreadGroup& group) {
    try {
      train_on(group, plan);
      ADD_FAILURE() << "must not train";
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("made with seed '3', this run has '4'"));
    }
  });
  plan.fit.seed = 3;
  plan.dies_at = 0;
  EXPECT_EQ(run(plan).state.epoch, 2);
}

TEST_F(FitTest, ADiskThatCannotBeWrittenDoesNotStopTheTraining) {
  RunPlan plan;
  plan.checkpoints = scratch_ / "lost";
  plan.asked_to_save = [&](int rank, std::int64_t step) {
    if (rank == 0 && step == 5) {
      std::filesystem::remove_all(plan.checkpoints);
      std::ofstream(plan.checkpoints) << "a file, where a folder was";
    }
    return false;
  };
  EXPECT_EQ(run(plan).parameters, run({}).parameters);
}

}  // namespace
}  // namespace muster::trainers
