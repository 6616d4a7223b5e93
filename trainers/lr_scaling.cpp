// An experiment on the learning rate: a global batch of four times the size needs four times the rate to learn as much
// in as many epochs. 512 samples whose labels have nothing to do with them, and a network that learns them by heart;
// SGD, the samples always in the same order. Three runs to compare:
//
//   lr_scaling --batch-size=64                             one worker's batch
//   lr_scaling --batch-size=256                            four times the batch at the same rate: it lags behind
//   lr_scaling --batch-size=256 --lr=0.4                   and at four times the rate: it keeps up
//   muster --nproc-per-node=4 lr_scaling --lr-scaling=linear    the last one, on four workers
#include <fmt/format.h>

#include <cstdio>

#include "muster/worker/worker.hpp"
#include "trainers/data/table.hpp"
#include "trainers/optim/sgd.hpp"
#include "trainers/parallel/ddp.hpp"
#include "trainers/tensor/sequential.hpp"
#include "trainers/training/model_file.hpp"
#include "trainers/training/option_table.hpp"
#include "trainers/training/options.hpp"
#include "trainers/training/run_files.hpp"

namespace muster::trainers {
namespace {

constexpr std::int64_t kSamples = 512;
constexpr std::int64_t kFeatures = 64;
constexpr std::int64_t kHidden = 32;
constexpr std::int64_t kClasses = 10;

TrainerProgram program(std::filesystem::path& data_file) {
  TrainerProgram program{
      .what =
          "lr_scaling: trains Linear(64, 32), ReLU, Linear(32, 10) on 512 random samples with SGD, to "
          "show how the learning rate has to follow the global batch."};
  program.defaults.fit.epochs = 30;
  program.defaults.fit.order = Order::sequential;
  program.defaults.schedule.rate = 0.1;
  program.add_options = [&data_file](OptionTable& table) {
    table.remove("--data-dir");
    table.own(
        "--data", data_file,
        "a safetensors file with x (rows, 64) F32 and y (rows) I64; by default 512 random rows of --seed");
  };
  return program;
}

int train(int argc, char** argv) {
  std::filesystem::path data_file;
  const auto [options, exit_code] = parse_trainer_options(argc, argv, program(data_file));
  if (exit_code) return *exit_code;

  auto& device = device_for(options);
  auto worker = worker::Worker::join(worker_options(options, device));
  const auto data = data_file.empty() ? TableDataset::random(kSamples, kFeatures, kClasses, options.fit.seed)
                                      : TableDataset::load(data_file, kFeatures, kClasses);
  auto model = multi_layer_perceptron({kFeatures, kHidden, kClasses}, options.fit.seed);
  const auto parameters = model.parameters();
  Report report({.program = "lr_scaling",
                 .speaks = worker.is_rank_zero(),
                 .quiet = options.quiet,
                 .metrics_file = options.metrics_file});
  if (worker.is_rank_zero()) prepare_files(options, parameters, report);
  for (auto* parameter : parameters) parameter->move_to(device);

  auto& group = worker.process_group();
  check_agreement(group, options.agreement, parameters, data, data);
  Sgd optimizer(parameters, {.learning_rate = options.schedule.rate});
  const RunIdentity identity{.model = "mlp 64-32-10 relu, sgd",
                             .samples = data.size(),
                             .seed = options.fit.seed,
                             .world_size = group.size(),
                             .batch_size = options.fit.batch_size};
  DataParallel ddp(parameters, group);
  Checkpointer checkpointer(options.checkpoints, identity,
                            state_shards(whole_parameters(parameters, group.rank()), optimizer), optimizer,
                            group, report);
  const Supervision supervision{.progress = [&](std::int64_t step) { worker.progress(step); },
                                .asked_to_save = [&] { return worker.asked_to_save(); }};
  Fit fit({model, ddp, optimizer, group, data, data, checkpointer, report, supervision, device}, options.fit);
  fit.run();
  if (fit.drained()) return worker.drained(fit.saved_step());

  const double loss = mean_loss(model, data, group, device);
  if (worker.is_rank_zero()) {
    fmt::print("lr_scaling: loss {:.6f} over all {} samples; global batch {}, learning rate {:g}\n", loss,
               data.size(), fit.state().global_batch, optimizer.learning_rate);
    export_result(options, parameters, fit, report);
  }
  check_metrics(options, fit, report);
  check_last_checkpoint(options, fit, report);
  return worker.done();
}

}  // namespace
}  // namespace muster::trainers

int main(int argc, char** argv) { return muster::worker::run_main(muster::trainers::train, argc, argv); }
