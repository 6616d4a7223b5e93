// The first reference trainer: a small network on Fashion-MNIST (or MNIST itself), data-parallel. Runs alone,
// under muster, and under PyTorch's torchrun.
#include <cstdio>

#include "muster/worker/worker.hpp"
#include "trainers/optim/adam.hpp"
#include "trainers/parallel/ddp.hpp"
#include "trainers/tensor/sequential.hpp"
#include "trainers/training/fit.hpp"
#include "trainers/training/model_file.hpp"
#include "trainers/training/options.hpp"
#include "trainers/training/writable.hpp"

namespace muster::trainers {
namespace {

constexpr const char* kWhat =
    "ddp_mnist: trains Linear(784, 256), ReLU, Linear(256, 10) on Fashion-MNIST with Adam, data-parallel "
    "over "
    "all workers of the job.";

int train(int argc, char** argv) {
  const auto [options, exit_code] = parse_trainer_options(argc, argv, kWhat);
  if (exit_code) return *exit_code;

  // What the user may have got wrong comes first, before anyone waits for anyone.
  auto worker = worker::Worker::join();
  const auto train_set = ImageDataset::load(options.data_dir, Split::train);
  const auto test_set = ImageDataset::load(options.data_dir, Split::test);
  auto model = multi_layer_perceptron({ImageDataset::kPixels, 256, ImageDataset::kClasses}, options.fit.seed);
  const auto parameters = model.parameters();
  if (worker.is_rank_zero() && !options.init_file.empty()) load_parameters(options.init_file, parameters);
  Report report({.program = "ddp_mnist",
                 .speaks = worker.is_rank_zero(),
                 .quiet = options.quiet,
                 .metrics_file = options.metrics_file});

  if (worker.is_rank_zero()) {
    if (!options.export_file.empty()) check_writable_file(options.export_file, "--export");
    if (!options.checkpoint_dir.empty()) check_writable_folder(options.checkpoint_dir, "--checkpoint-dir");
  }

  auto& group = worker.process_group();
  Adam optimizer(parameters, {.learning_rate = options.learning_rate});
  const RunIdentity identity{.model = "mlp 784-256-10 relu, adam",
                             .samples = train_set.size(),
                             .seed = options.fit.seed,
                             .world_size = group.size(),
                             .batch_size = options.fit.batch_size};
  Checkpointer checkpointer({.folder = options.checkpoint_dir, .keep_last = options.keep_last}, identity,
                            parameters, optimizer, group, report);
  const Supervision supervision{.progress = [&](std::int64_t step) { worker.progress(step); },
                                .asked_to_save = [&] { return worker.asked_to_save(); }};
  DataParallel ddp(parameters, group);
  Fit fit({model, ddp, optimizer, group, train_set, test_set, checkpointer, report, supervision},
          options.fit);
  fit.run();
  if (fit.drained()) return worker.drained(fit.saved_step());

  if (worker.is_rank_zero() && !options.export_file.empty()) {
    export_parameters(options.export_file, parameters);
    report.exported(options.export_file);
  }
  return 0;
}

}  // namespace
}  // namespace muster::trainers

int main(int argc, char** argv) { return muster::worker::run_main(muster::trainers::train, argc, argv); }
