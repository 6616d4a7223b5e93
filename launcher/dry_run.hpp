// The whole plan in words: what --dry-run prints. Pure.
#pragma once

#include <string>
#include <vector>

#include "launcher/expected_place.hpp"
#include "launcher/options.hpp"
#include "launcher/plan.hpp"

namespace muster::launcher {

/// Plan, where each setting comes from, command, addresses, and each worker's variables as far as they are not
/// inherited; "<...>" stands where only the running job knows. `inherited`: this process's environment. The plan's run
/// folder is the one that would be made.
std::string dry_run_text(const LauncherOptions& options, const Plan& plan, const ExpectedPlace& place,
                         const std::vector<std::string>& inherited);

}  // namespace muster::launcher
