// What Slurm's variables say that does not fit this job: said before anybody waits. Pure.
#pragma once

#include <string>
#include <vector>

#include "launcher/options.hpp"

namespace muster::launcher {

/// Lines for the user, without prefix and newline; none outside of Slurm.
std::vector<std::string> slurm_warnings(const LauncherOptions& options, const Environment& environment);

}  // namespace muster::launcher
