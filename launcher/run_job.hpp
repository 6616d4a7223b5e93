// Runs a planned job to its end.
#pragma once

#include "agent/process/guard.hpp"
#include "launcher/plan.hpp"

namespace muster::launcher {

/// Prints the plan, becomes this node's agent, reports last on stderr and in status.json. The exit code.
int run_job(Plan plan, agent::Guard& guard);

}  // namespace muster::launcher
