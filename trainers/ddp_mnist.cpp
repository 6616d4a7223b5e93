// The first reference trainer: a small network on Fashion-MNIST (or MNIST itself), data-parallel. Runs alone,
// under muster, and under PyTorch's torchrun.
#include <cstdio>

#include "muster/worker/worker.hpp"
#include "trainers/optim/adam.hpp"
#include "trainers/parallel/ddp.hpp"
#include "trainers/tensor/sequential.hpp"
#include "trainers/training/fit.hpp"
#include "trainers/training/options.hpp"
#include "trainers/training/run_files.hpp"

namespace muster::trainers {
namespace {

constexpr const char* kWhat =
    "ddp_mnist: trains Linear(784, 256), ReLU, Linear(256, 10) on Fashion-MNIST with Adam, data-parallel "
    "over "
    "all workers of the job.";

int train(int argc, char** argv) {
  const auto [options, exit_code] = parse_trainer_options(argc, argv, {.what = kWhat});
  if (exit_code) return *exit_code;

  // What the user may have got wrong comes first, before anyone waits for anyone.
  auto& device = device_for(options);
  auto worker = worker::Worker::join(worker_options(options, device));
  const auto train_set = ImageDataset::load(options.data_dir, Split::train);
  const auto test_set = ImageDataset::load(options.data_dir, Split::test);
  auto model = multi_layer_perceptron({ImageDataset::kPixels, 256, ImageDataset::kClasses}, options.fit.seed);
  const auto parameters = model.parameters();
  Report report({.program = "ddp_mnist",
                 .speaks = worker.is_rank_zero(),
                 .quiet = options.quiet,
                 .metrics_file = options.metrics_file});
  if (worker.is_rank_zero()) prepare_files(options, parameters, report);
  for (auto* parameter : parameters) parameter->move_to(device);

  auto& group = worker.process_group();
  check_agreement(group, options.agreement, parameters, train_set, test_set);
  Adam optimizer(parameters, {.learning_rate = options.schedule.rate});
  const RunIdentity identity{.model = "mlp 784-256-10 relu, adam",
                             .samples = train_set.size(),
                             .seed = options.fit.seed,
                             .world_size = group.size(),
                             .batch_size = options.fit.batch_size};
  DataParallel ddp(parameters, group);
  Checkpointer checkpointer(options.checkpoints, identity,
                            state_shards(whole_parameters(parameters, group.rank()), optimizer), optimizer,
                            group, report);
  const Supervision supervision{.progress = [&](std::int64_t step) { worker.progress(step); },
                                .asked_to_save = [&] { return worker.asked_to_save(); }};
  Fit fit({model, ddp, optimizer, group, train_set, test_set, checkpointer, report, supervision, device},
          options.fit);
  fit.run();
  if (fit.drained()) return worker.drained(fit.saved_step());

  if (worker.is_rank_zero()) export_result(options, parameters, fit, report);
  check_metrics(options, fit, report);
  check_last_checkpoint(options, fit, report);
  return worker.done();
}

}  // namespace
}  // namespace muster::trainers

int main(int argc, char** argv) { return muster::worker::run_main(muster::trainers::train, argc, argv); }
