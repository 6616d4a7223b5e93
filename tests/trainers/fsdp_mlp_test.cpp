// The program itself, on a small data set made by the test.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/trainers/trainer_process.hpp"
#include "trainers/tensor/sequential.hpp"
#include "trainers/training/model_file.hpp"

namespace muster::trainers {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Arguments = std::vector<std::string>;

constexpr std::uint32_t kTrainSamples = 160;
constexpr int kGlobalBatch = 16;

class FsdpMlp : public testing::Test {
 protected:
  FsdpMlp() {
    std::filesystem::create_directory(data());
    write_tiny_mnist(data(), kTrainSamples, 51);
  }

  std::filesystem::path data() const { return folder_ / "data"; }

  /// Runs a world to its end; the exit codes by rank. The global batch is the same in worlds of all sizes.
  std::vector<int> run_world(int size, const Arguments& more, int ranks_per_node = 1000) {
    Arguments args = {"--data-dir", data().string(), "--epochs",
                      "2",          "--batch-size",  std::to_string(kGlobalBatch / size)};
    args.insert(args.end(), model_.begin(), model_.end());
    args.insert(args.end(), more.begin(), more.end());
    std::vector<std::unique_ptr<TrainerProcess>> ranks;
    for (int rank = 0; rank < size; ++rank) {
      ranks.push_back(std::make_unique<TrainerProcess>(
          folder_.path(), args, RankPlace{rank, size, port_.port(), "fsdp_mlp", ranks_per_node}));
    }
    std::vector<int> codes;
    for (auto& rank : ranks) codes.push_back(rank->exit_code());
    return codes;
  }

  std::string errors() const { return read_text(folder_ / "err-0"); }
  std::string output() const { return read_text(folder_ / "out-0"); }

  std::vector<double> epoch_losses(const std::string& metrics) const {
    std::istringstream lines(read_text(folder_ / metrics));
    std::vector<double> losses;
    for (std::string line; std::getline(lines, line);) {
      const auto json = nlohmann::json::parse(line);
      if (json.at("event") == "epoch") losses.push_back(json.at("loss"));
    }
    return losses;
  }

  TemporaryFolder folder_;
  ReservedPort port_;
  Arguments model_ = {"--hidden-dim", "24", "--layers", "4", "--min-num-params", "1000"};
};

const Arguments kSingle = {"--param-dtype", "fp32", "--reduce-dtype", "fp32"};

Arguments with(Arguments args, const Arguments& more) {
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

TEST_F(FsdpMlp, WorldsOfOneTwoAndFourInEveryStrategyTrainAlike) {
  struct Run {
    int size;
    std::string strategy;
  };
  std::vector<double> first;
  for (const auto& run :
       {Run{1, "FULL_SHARD"}, Run{2, "FULL_SHARD"}, Run{4, "FULL_SHARD"}, Run{2, "shard_grad_op"},
        Run{4, "HYBRID_SHARD"}, Run{2, "SHARD_OPTIMIZER"}, Run{2, "NO_SHARD"}}) {
    SCOPED_TRACE(run.strategy + " " + std::to_string(run.size));
    const auto name = run.strategy + std::to_string(run.size);
    const auto args = with(kSingle, {"--strategy", run.strategy, "--metrics-file", folder_ / name,
                                     "--clip-norm", "1", "--export", folder_ / (name + ".safetensors")});
    ASSERT_EQ(run_world(run.size, args, 2), std::vector<int>(static_cast<std::size_t>(run.size), 0))
        << errors();
    const auto losses = epoch_losses(name);
    ASSERT_EQ(losses.size(), 2U);
    if (first.empty()) first = losses;
    EXPECT_THAT(losses, testing::Pointwise(testing::DoubleNear(1e-5), first));
    auto model = multi_layer_perceptron({784, 24, 24, 24, 10}, 9);
    load_parameters(folder_ / (name + ".safetensors"), model.parameters());  // all of them, whole
  }
  EXPECT_LT(first[1], first[0]);
}

TEST_F(FsdpMlp, ByDefaultItShardsAllAndTravelsInBfloat16) {
  ASSERT_EQ(run_world(2, {}), (std::vector<int>{0, 0})) << errors();
  EXPECT_THAT(output(),
              AllOf(HasSubstr("fsdp_mlp: epoch 2 of 2: loss "),
                    HasSubstr("fsdp_mlp: FULL_SHARD over 2 ranks, parameters bf16, reduction bf16: 20290 "
                              "parameters; this rank's model state takes"),
                    HasSubstr("16 bytes x parameters / 2 = 0.2 MB")));
}

/// The number before the `place`-th " MB" of the line on memory.
double megabytes_printed(const std::string& output, int place) {
  auto line = output.substr(std::min(output.find("model state takes"), output.size()));
  std::size_t end = 0;
  for (int i = 0; i <= place; ++i) end = line.find(" MB", end + 1);
  if (end == std::string::npos) return std::nan("");
  return std::stod(line.substr(line.rfind(' ', end - 1) + 1));
}

/// What the printed memory is of what it may be: the share, what the strategy keeps whole, and one unit.
double part_of_bound(const std::string& text, const std::string& strategy) {
  constexpr int kMost = 2;
  constexpr int kShare = 3;
  constexpr int kUnit = 4;
  const auto count = text.find(" parameters; this rank's");
  if (count == std::string::npos) return std::nan("");
  const double million_parameters = std::stod(text.substr(text.rfind(' ', count - 1) + 1)) / 1e6;
  const double whole_by_name = million_parameters * (strategy == "SHARD_GRAD_OP"     ? 4
                                                     : strategy == "SHARD_OPTIMIZER" ? 8
                                                                                     : 0);
  return megabytes_printed(text, kMost) /
         (megabytes_printed(text, kShare) + whole_by_name + megabytes_printed(text, kUnit));
}

TEST_F(FsdpMlp, TheMemoryItPrintsIsItsShareAndOneUnitInEveryStrategy) {
  model_ = {"--hidden-dim", "512", "--layers", "12", "--min-num-params", "100000"};
  for (int size : {2, 4}) {
    for (const std::string strategy :
         {"FULL_SHARD", "SHARD_GRAD_OP", "HYBRID_SHARD", "SHARD_OPTIMIZER", "NO_SHARD"}) {
      for (const auto& types : {Arguments{}, kSingle}) {
        SCOPED_TRACE(testing::Message() << strategy << " " << size << (types.empty() ? " bf16" : " fp32"));
        const bool hybrid = strategy == "HYBRID_SHARD";
        const auto args = with(types, {"--strategy", strategy, "--max-steps", "2"});
        ASSERT_EQ(run_world(size, args, hybrid ? 2 : 1000),
                  std::vector<int>(static_cast<std::size_t>(size), 0))
            << errors();
        const auto text = output();
        const int parts = strategy == "NO_SHARD" ? 1 : hybrid ? 2 : size;
        EXPECT_THAT(text, HasSubstr("parameters / " + std::to_string(parts) + " = "));
        EXPECT_LE(part_of_bound(text, strategy), 1.15) << text;
      }
    }
  }
}

TEST_F(FsdpMlp, TheMemoryItPrintsIsItsShareAndOneUnitWhereAUnitIsLarge) {
  const std::vector<Arguments> prefetches = {{}, {"--no-prefetch"}};
  for (const char* layers : {"3", "5"}) {
    model_ = {"--hidden-dim", "1024", "--layers", layers};
    for (int size : {2, 4}) {
      for (const auto& types : {Arguments{}, kSingle}) {
        for (const auto& prefetch : prefetches) {
          SCOPED_TRACE(testing::Message() << layers << " layers, " << size << " ranks");
          ASSERT_EQ(run_world(size, with(with(types, prefetch), {"--max-steps", "2"})),
                    std::vector<int>(static_cast<std::size_t>(size), 0))
              << errors();
          EXPECT_LE(part_of_bound(output(), "FULL_SHARD"), 1.15) << output();
        }
      }
    }
  }
}

TEST_F(FsdpMlp, ItsStepsAndItsBytesAreTheSameInEveryRun) {
  for (const char* name : {"a", "b"})
    ASSERT_EQ(run_world(2, {"--export", folder_ / name}), (std::vector<int>{0, 0})) << errors();
  EXPECT_TRUE(read_text(folder_ / "a") == read_text(folder_ / "b"));
}

TEST_F(FsdpMlp, AnotherWorldInAnotherStrategyGoesOnFromItsCheckpoint) {
  const auto part = [&](const std::string& name, const Arguments& more) {
    return with(with(kSingle, {"--export", folder_ / name, "--keep", "global-batch"}), more);
  };
  ASSERT_EQ(run_world(2, part("whole", {})), (std::vector<int>{0, 0})) << errors();
  const Arguments checkpoints = {"--checkpoint-dir", folder_ / "checkpoints"};
  ASSERT_EQ(run_world(2, part("half", with(checkpoints, {"--max-steps", "7"}))), (std::vector<int>{0, 0}))
      << errors();
  const auto resumed = part("resumed", with(checkpoints, {"--strategy", "SHARD_OPTIMIZER"}));
  ASSERT_EQ(run_world(4, resumed), (std::vector<int>{0, 0, 0, 0})) << errors();
  EXPECT_THAT(output(), HasSubstr("step 7"));
  auto whole = multi_layer_perceptron({784, 24, 24, 24, 10}, 8);
  auto parts = multi_layer_perceptron({784, 24, 24, 24, 10}, 9);
  load_parameters(folder_ / "whole", whole.parameters());
  load_parameters(folder_ / "resumed", parts.parameters());
  for (std::size_t p = 0; p < whole.parameters().size(); ++p) {
    EXPECT_THAT(parts.parameters()[p]->value.values(),
                testing::Pointwise(testing::FloatNear(1e-4F), whole.parameters()[p]->value.values()));
  }
}

TEST_F(FsdpMlp, WrongOptionsAreUsageErrorsThatSayWhatIsAllowed) {
  TrainerProcess strategy(folder_.path(), {"--strategy", "HALF_SHARD"}, {.program = "fsdp_mlp"});
  EXPECT_EQ(strategy.exit_code(), 2);
  EXPECT_THAT(strategy.errors(),
              AllOf(HasSubstr("--strategy"), HasSubstr("HALF_SHARD"),
                    HasSubstr("FULL_SHARD, HYBRID_SHARD, NO_SHARD, SHARD_GRAD_OP, SHARD_OPTIMIZER")));
  TrainerProcess type(folder_.path(), {"--param-dtype", "fp8"}, {.program = "fsdp_mlp"});
  EXPECT_EQ(type.exit_code(), 2);
  EXPECT_THAT(type.errors(), AllOf(HasSubstr("--param-dtype"), HasSubstr("bf16, fp32")));
}

TEST_F(FsdpMlp, RanksWithOtherWeightDecayAreToldBeforeTheyTrain) {
  const Arguments args = {"--data-dir", data().string(), "--hidden-dim", "24", "--max-steps", "2"};
  TrainerProcess first(folder_.path(), args, {0, 2, port_.port(), "fsdp_mlp"});
  TrainerProcess second(folder_.path(), with(args, {"--weight-decay", "0.1"}),
                        {1, 2, port_.port(), "fsdp_mlp"});
  for (auto* rank : {&first, &second}) {
    EXPECT_EQ(rank->exit_code(), 2);
    EXPECT_THAT(rank->errors(), HasSubstr("--weight-decay: rank 1 has 0.1, rank 0 has 0.01; all ranks must"));
  }
}

TEST_F(FsdpMlp, HybridShardingNeedsAsManyWorkersOnEachNode) {
  EXPECT_EQ(run_world(4, {"--strategy", "HYBRID_SHARD"}, 3), (std::vector<int>{2, 2, 2, 2}));
  EXPECT_THAT(errors(), HasSubstr("node 0 has 3 workers, node 1 has 1; start as many on each node"));
}

}  // namespace
}  // namespace muster::trainers
