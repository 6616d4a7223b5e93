// The second reference trainer: a multi-layer perceptron whose parameters, gradients and optimizer state are sharded over
// all workers. Runs alone, under muster, and under PyTorch's torchrun.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>

#include "muster/worker/worker.hpp"
#include "trainers/optim/adam.hpp"
#include "trainers/parallel/fsdp.hpp"
#include "trainers/training/fit.hpp"
#include "trainers/training/fsdp_mlp_options.hpp"
#include "trainers/training/run_files.hpp"

namespace muster::trainers {
namespace {

/// Made here, so that all ranks make the same groups in the same order.
ShardingGroups groups_for(ShardingStrategy strategy, worker::Worker& worker) {
  auto& world = worker.process_group();
  if (strategy == ShardingStrategy::hybrid_shard) {
    auto& node = worker.node_group();
    return {.shard = node, .replicate = worker.cross_node_group()};
  }
  const int own = worker.environment().rank;
  auto& alone = worker.sub_group(fmt::format("rank {}", own), std::span<const int>(&own, 1));
  if (strategy == ShardingStrategy::no_shard) return {.shard = alone, .replicate = world};
  return {.shard = world, .replicate = alone};
}

/// `parts` is how many ranks share one copy of the state.
void print_memory(const FsdpMlpOptions& options, const StateMemory& memory, int ranks, int parts) {
  constexpr double kMegabyte = 1e6;
  constexpr int kBytesOfAdam = 16;
  const auto megabytes = [](auto bytes) { return static_cast<double>(bytes) / kMegabyte; };
  fmt::print(
      "fsdp_mlp: {} over {} ranks, parameters {}, reduction {}: {} parameters; this rank's model state takes "
      "{:.1f} MB and {:.1f} MB for whole units, {:.1f} MB at most (16 bytes x parameters / {} = {:.1f} MB; "
      "the "
      "largest unit {:.1f} MB)\n",
      text_of(options.sharding.strategy), ranks, text_of_type(options.sharding.precision.parameters),
      text_of_type(options.sharding.precision.reduction), memory.parameters, megabytes(memory.kept),
      megabytes(memory.most_whole), megabytes(memory.most()), parts,
      megabytes(kBytesOfAdam * memory.parameters / parts), megabytes(memory.largest_unit));
  std::fflush(stdout);
}

std::string text_of_widths(const std::vector<std::int64_t>& widths) {
  return fmt::format("{}", fmt::join(widths, "-"));
}

int train(int argc, char** argv) {
  const auto [options, exit_code] = parse_fsdp_mlp_options(argc, argv);
  if (exit_code) return *exit_code;
  const auto& trainer = options.trainer;

  // What the user may have got wrong comes first, before anyone waits for anyone.
  auto& device = device_for(trainer);
  auto worker = worker::Worker::join(worker_options(trainer, device));
  const bool speaks = worker.is_rank_zero();
  const auto train_set = ImageDataset::load(trainer.data_dir, Split::train);
  const auto test_set = ImageDataset::load(trainer.data_dir, Split::test);
  auto model = multi_layer_perceptron(options.widths(), trainer.fit.seed);
  const auto parameters = model.parameters();
  Report report({.program = "fsdp_mlp",
                 .speaks = speaks,
                 .quiet = trainer.quiet,
                 .metrics_file = trainer.metrics_file});
  if (speaks) prepare_files(trainer, parameters, report);
  for (auto* parameter : parameters) parameter->move_to(device);

  auto& group = worker.process_group();
  check_agreement(group, trainer.agreement, parameters, train_set, test_set);
  const auto groups = groups_for(options.sharding.strategy, worker);
  FullySharded sharded(model, groups, options.sharding);
  Adam optimizer(sharded.parameters(), {.learning_rate = trainer.schedule.rate,
                                        .weight_decay = options.weight_decay,
                                        .kind = WeightDecay::decoupled});
  const RunIdentity identity{.model = fmt::format("mlp {} relu, adamw", text_of_widths(options.widths())),
                             .samples = train_set.size(),
                             .seed = trainer.fit.seed,
                             .world_size = group.size(),
                             .batch_size = trainer.fit.batch_size};
  Checkpointer checkpointer(trainer.checkpoints, identity, state_shards(sharded.shards(), optimizer),
                            optimizer, group, report);
  const Supervision supervision{.progress = [&](std::int64_t step) { worker.progress(step); },
                                .asked_to_save = [&] { return worker.asked_to_save(); }};
  Fit fit(
      {sharded, sharded, optimizer, group, train_set, test_set, checkpointer, report, supervision, device},
      trainer.fit);
  fit.run();
  if (speaks && !trainer.quiet)
    print_memory(options, sharded.memory(optimizer), group.size(), groups.shard.size());
  if (fit.drained()) return worker.drained(fit.saved_step());

  sharded.with_whole_parameters([&] {
    if (speaks) export_result(trainer, parameters, fit, report);
  });
  check_metrics(trainer, fit, report);
  check_last_checkpoint(trainer, fit, report);
  return worker.done();
}

}  // namespace
}  // namespace muster::trainers

int main(int argc, char** argv) { return muster::worker::run_main(muster::trainers::train, argc, argv); }
