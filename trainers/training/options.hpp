// The command line that all reference trainers share.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "muster/worker/worker.hpp"
#include "trainers/training/agreement.hpp"
#include "trainers/training/fit.hpp"

namespace muster::trainers {

class OptionTable;

struct TrainerOptions {
  std::filesystem::path data_dir = "/usr/share/datasets/fashion-mnist";
  FitOptions fit;
  ScheduleOptions schedule;  ///< without its reference batch, which base_workers gives
  int base_workers = 1;      ///< of the world that the learning rate is meant for
  CheckpointerOptions checkpoints;
  bool require_checkpoints = false;  ///< a run whose last state could not be saved has failed
  std::filesystem::path init_file;
  std::filesystem::path export_file;
  std::filesystem::path metrics_file;
  bool quiet = false;
  std::vector<std::string> without_effect;  ///< given, and for nothing without --checkpoint-dir
  std::string device = "cpu";               ///< or "cuda"
  Description agreement;                    ///< of the command line: what must be the same on every rank
  std::optional<std::string>
      backend;  ///< of the device's collectives: "gloo", "nccl"; nothing: the device's own
};

/// Either options, or the exit code with which the program is to end now: 0 after --help, 2 after one line on
/// stderr that names the option and what is allowed.
struct ParsedOptions {
  TrainerOptions options;
  std::optional<int> exit_code;
};

/// What one trainer has beyond the others.
struct TrainerProgram {
  std::string what;  ///< in a sentence, for --help
  TrainerOptions defaults = {};
  std::function<void(OptionTable&)> add_options = [](OptionTable&) {};
};

ParsedOptions parse_trainer_options(int argc, char** argv, const TrainerProgram& program);

/// The device that --device asks for, for this worker. Throws std::invalid_argument where it cannot be had.
Device& device_for(const TrainerOptions& options);
/// How a worker with it joins.
worker::WorkerOptions worker_options(const TrainerOptions& options, Device& device);

}  // namespace muster::trainers
