#include "trainers/training/run_files.hpp"

#include <fmt/format.h>

#include "muster/worker/permanent_error.hpp"
#include "trainers/training/model_file.hpp"
#include "trainers/training/writable.hpp"

namespace muster::trainers {
namespace {

std::string where_they_are(const TrainerOptions& options, const Fit& fit) {
  if (options.checkpoints.folder.empty())
    return "the trained parameters are lost: there is no checkpoint of them (--checkpoint-dir)";
  if (fit.saved_step() != fit.state().step)
    return fmt::format("the trained parameters are lost: their checkpoint could not be written to {} either",
                       options.checkpoints.folder.string());
  return fmt::format(
      "nothing is lost: `muster_checkpoint consolidate --prefix=model. {} FILE` writes the trained "
      "parameters",
      options.checkpoints.folder.string());
}

}  // namespace

void prepare_files(const TrainerOptions& options, const std::vector<Parameter*>& parameters,
                   const Report& report) {
  if (!options.without_effect.empty()) report.without_checkpoints(options.without_effect);
  if (!options.init_file.empty()) load_parameters(options.init_file, parameters);
  if (!options.export_file.empty()) check_writable_file(options.export_file, "--export");
  if (!options.checkpoints.folder.empty())
    check_writable_folder(options.checkpoints.folder, "--checkpoint-dir");
}

void export_result(const TrainerOptions& options, const std::vector<Parameter*>& parameters, const Fit& fit,
                   Report& report) {
  if (options.export_file.empty()) return;
  try {
    export_parameters(options.export_file, parameters);
  } catch (const worker::CheckpointError& error) {
    throw worker::PermanentError(
        fmt::format("--export: {}; training is complete, {}", error.what(), where_they_are(options, fit)));
  }
  report.exported(options.export_file);
}

void check_metrics(const TrainerOptions& options, const Fit& fit, const Report& report) {
  if (report.metrics_error() == 0) return;
  const auto where =
      !options.export_file.empty() ? "the trained parameters are exported to " + options.export_file.string()
      : options.checkpoints.folder.empty()
          ? "only these lines are missing: nothing else was to be kept (--export, --checkpoint-dir)"
          : where_they_are(options, fit);
  throw worker::PermanentError(
      fmt::format("{}; training is complete, {}", report.metrics_failure(report.metrics_error()), where));
}

void check_last_checkpoint(const TrainerOptions& options, const Fit& fit, const Report& report) {
  if (options.checkpoints.folder.empty() || fit.saved_step() == fit.state().step) return;
  if (!options.require_checkpoints) return report.last_state_not_saved(fit.state().step);
  const auto newest = fit.saved_step() == 0
                          ? std::string("there is no checkpoint")
                          : fmt::format("the newest checkpoint is of step {}", fit.saved_step());
  throw worker::PermanentError(
      fmt::format("--require-checkpoints: step {} could not be saved, {}; the reason is told above",
                  fit.state().step, newest));
}

}  // namespace muster::trainers
