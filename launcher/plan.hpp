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
  std::string host;  ///< this host's short name
  WorkerCount workers;
  Target target;
  int max_restarts = 0;
  Duration stop_grace{};
  int usable_cpus = 1;
  std::filesystem::path run_folder;  ///< empty: no logs
};

/// All but the run folder. Chooses a run id and a node id where none is given.
Plan make_plan(const LauncherOptions& options, const Target& target, const WorkerCount& workers,
               int usable_cpus);

/// Whole lines, each beginning with "muster: ".
std::string start_lines(const Plan& plan);

}  // namespace muster::launcher
