// The command line that all reference trainers share.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "trainers/training/fit.hpp"

namespace muster::trainers {

struct TrainerOptions {
  std::filesystem::path data_dir = "/usr/share/datasets/fashion-mnist";
  FitOptions fit;
  double learning_rate = 1e-3;
  std::filesystem::path checkpoint_dir;
  int keep_last = 3;
  std::filesystem::path init_file;
  std::filesystem::path export_file;
  std::filesystem::path metrics_file;
  bool quiet = false;
};

/// Either options, or the exit code with which the program is to end now: 0 after --help, 2 after one line on
/// stderr that names the option and what is allowed.
struct ParsedOptions {
  TrainerOptions options;
  std::optional<int> exit_code;
};

/// `what` is the program in a sentence, for --help.
ParsedOptions parse_trainer_options(int argc, char** argv, const std::string& what);

}  // namespace muster::trainers
