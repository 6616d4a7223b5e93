#include "trainers/training/fsdp_mlp_options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <map>

#include "trainers/data/dataset.hpp"

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

/// One of the words, in any case.
template <class T>
void add_choice(CLI::App& app, const std::string& name, T& value, const std::map<std::string, T>& words,
                const std::string& what) {
  std::string all;
  std::string now;
  for (const auto& [word, meaning] : words) {
    all += (all.empty() ? "" : ", ") + word;
    if (meaning == value) now = word;
  }
  const auto choose = [&value, &words, name, all](const std::string& given) {
    for (const auto& [word, meaning] : words) {
      const auto same = [](char a, char b) { return std::tolower(a) == std::tolower(b); };
      if (!std::equal(given.begin(), given.end(), word.begin(), word.end(), same)) continue;
      value = meaning;
      return;
    }
    throw CLI::ValidationError(name, "'" + given + "' is none of " + all);
  };
  app.add_option_function<std::string>(name, choose, what + ": " + all + " (" + now + " by default)");
}

void add_options(CLI::App& app, FsdpMlpOptions& options) {
  app.add_option("--hidden-dim", options.hidden_dim, "width of the hidden layers")
      ->check(CLI::Range(std::int64_t{1}, kMaxWidth))
      ->capture_default_str();
  app.add_option("--layers", options.layers, "linear layers, the last one included")
      ->check(CLI::Range(std::int64_t{1}, kMaxLayers))
      ->capture_default_str();
  app.add_option("--weight-decay", options.weight_decay, "AdamW's")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  add_choice(app, "--strategy", options.sharding.strategy, kStrategies, "what is sharded");
  add_choice(app, "--param-dtype", options.sharding.precision.parameters, kTypes,
             "parameters as layers use them; the optimizer's are fp32");
  add_choice(app, "--reduce-dtype", options.sharding.precision.reduction, kTypes,
             "gradients as they are added up");
  app.add_option("--min-num-params", options.sharding.min_num_params,
                 "layers are gathered and freed together until they have so many parameters")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->capture_default_str();
  app.add_flag_callback(
      "--no-prefetch", [&options] { options.sharding.prefetch = Prefetch::none; },
      "fetch each unit's parameters only when they are needed");
}

template <class T>
std::string word_for(const std::map<std::string, T>& words, T value) {
  return std::find_if(words.begin(), words.end(), [&](const auto& entry) { return entry.second == value; })
      ->first;
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
  program.add_options = [&options](CLI::App& app) { add_options(app, options); };
  auto [trainer, exit_code] = parse_trainer_options(argc, argv, program);
  options.trainer = std::move(trainer);
  parsed.exit_code = exit_code;
  return parsed;
}

Description describe(const FsdpMlpOptions& options) {
  auto all = describe(options.trainer);
  const auto& sharding = options.sharding;
  const Description own = {{"--hidden-dim", std::to_string(options.hidden_dim)},
                           {"--layers", std::to_string(options.layers)},
                           {"--strategy", text_of(sharding.strategy)},
                           {"--param-dtype", text_of_type(sharding.precision.parameters)},
                           {"--reduce-dtype", text_of_type(sharding.precision.reduction)},
                           {"--min-num-params", std::to_string(sharding.min_num_params)},
                           {"--no-prefetch", sharding.prefetch == Prefetch::none ? "given" : "not given"}};
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

std::string text_of(ShardingStrategy strategy) { return word_for(kStrategies, strategy); }
std::string text_of_type(worker::ElementType type) { return word_for(kTypes, type); }

}  // namespace muster::trainers
