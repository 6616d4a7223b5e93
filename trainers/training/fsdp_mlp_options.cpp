#include "trainers/training/fsdp_mlp_options.hpp"

#include <map>

#include "trainers/data/dataset.hpp"
#include "trainers/training/option_table.hpp"

namespace muster::trainers {
namespace {

constexpr const char* kWhat =
    "fsdp_mlp: trains a multi-layer perceptron on Fashion-MNIST with AdamW, its state sharded over all "
    "workers of the job.";

constexpr std::int64_t kMaxWidth = 1 << 16;
constexpr std::int64_t kMaxLayers = 1000;

const std::map<std::string, ShardingStrategy> kStrategies = {
    {"FULL_SHARD", ShardingStrategy::full_shard},
    {"SHARD_GRAD_OP", ShardingStrategy::shard_grad_op},
    {"HYBRID_SHARD", ShardingStrategy::hybrid_shard},
    {"SHARD_OPTIMIZER", ShardingStrategy::shard_optimizer},
    {"NO_SHARD", ShardingStrategy::no_shard}};
const std::map<std::string, worker::ElementType> kTypes = {{"fp32", worker::ElementType::f32},
                                                           {"bf16", worker::ElementType::bf16}};

void add_options(OptionTable& table, FsdpMlpOptions& options) {
  auto& sharding = options.sharding;
  table.agreed("--hidden-dim", options.hidden_dim, "width of the hidden layers")
      ->check(CLI::Range(std::int64_t{1}, kMaxWidth))
      ->capture_default_str();
  table.agreed("--layers", options.layers, "linear layers, the last one included")
      ->check(CLI::Range(std::int64_t{1}, kMaxLayers))
      ->capture_default_str();
  table.agreed("--weight-decay", options.weight_decay, "AdamW's")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  table.agreed_choice("--strategy", sharding.strategy, kStrategies, "what is sharded");
  table.agreed_choice("--param-dtype", sharding.precision.parameters, kTypes,
                      "parameters as layers use them; the optimizer's are fp32");
  table.agreed_choice("--reduce-dtype", sharding.precision.reduction, kTypes,
                      "gradients as they are added up");
  table
      .agreed("--min-num-params", sharding.min_num_params,
              "layers are gathered and freed together until they have so many parameters")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->capture_default_str();
  auto* never = table.agreed_flag(
      "--no-prefetch", [&sharding] { sharding.prefetch = Prefetch::none; },
      "fetch each unit's parameters only when they are needed");
  table
      .agreed_flag(
          "--always-prefetch", [&sharding] { sharding.prefetch = Prefetch::always; },
          "fetch them ahead also where that takes more than 1.15 times a rank's share and one unit")
      ->excludes(never);
}

}  // namespace

std::vector<std::int64_t> FsdpMlpOptions::widths() const {
  std::vector<std::int64_t> all{ImageDataset::kPixels};
  all.insert(all.end(), static_cast<std::size_t>(layers - 1), hidden_dim);
  all.push_back(ImageDataset::kClasses);
  return all;
}

ParsedFsdpMlpOptions parse_fsdp_mlp_options(int argc, char** argv) {
  ParsedFsdpMlpOptions parsed;
  auto& options = parsed.options;
  TrainerProgram program{.what = kWhat};
  program.add_options = [&options](OptionTable& table) { add_options(table, options); };
  auto [trainer, exit_code] = parse_trainer_options(argc, argv, program);
  options.trainer = std::move(trainer);
  parsed.exit_code = exit_code;
  return parsed;
}

std::string text_of(ShardingStrategy strategy) { return word_for(kStrategies, strategy); }
std::string text_of_type(worker::ElementType type) { return word_for(kTypes, type); }

}  // namespace muster::trainers
