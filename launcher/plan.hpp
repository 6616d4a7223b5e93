// What will be started, and the lines that say so.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launcher/options.hpp"
#include "launcher/target.hpp"
#include "launcher/worker_count.hpp"

namespace muster::launcher {

struct Plan {
  std::string run_id;
  std::string node;
  WorkerCount workers;
  Target target;
  int max_restarts = 0;
  Duration stop_grace{};
  std::filesystem::path run_folder;  ///< empty: no logs
};

/// Whole lines, each beginning with "muster: ".
std::string start_lines(const Plan& plan);

}  // namespace muster::launcher
