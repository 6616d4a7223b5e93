// The command line of fsdp_mlp: what all trainers have, and how its model is built and sharded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainers/parallel/fsdp.hpp"
#include "trainers/training/options.hpp"

namespace muster::trainers {

struct FsdpMlpOptions {
  TrainerOptions trainer;
  std::int64_t hidden_dim = 2048;
  std::int64_t layers = 8;  ///< linear ones, the output's among them
  double weight_decay = 0.01;
  ShardingOptions sharding = {
      .strategy = ShardingStrategy::full_shard,
      .precision = {.parameters = worker::ElementType::bf16, .reduction = worker::ElementType::bf16}};

  /// From the pixels to the classes.
  std::vector<std::int64_t> widths() const;
};

/// As parse_trainer_options.
struct ParsedFsdpMlpOptions {
  FsdpMlpOptions options;
  std::optional<int> exit_code;
};
ParsedFsdpMlpOptions parse_fsdp_mlp_options(int argc, char** argv);

/// As the command line has them: "FULL_SHARD", "bf16".
std::string text_of(ShardingStrategy strategy);
std::string text_of_type(worker::ElementType type);

}  // namespace muster::trainers
