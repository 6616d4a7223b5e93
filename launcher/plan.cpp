#include "launcher/plan.hpp"

#include <fmt/format.h>

namespace muster::launcher {

namespace {

std::string counted(int number, const std::string& thing) {
  return fmt::format("{} {}{}", number, thing, number == 1 ? "" : "s");
}

}  // namespace

std::string start_lines(const Plan& plan) {
  const std::string derivation = plan.workers.derivation.empty() ? "" : " (" + plan.workers.derivation + ")";
  const std::string restarts = plan.max_restarts == 0
                                   ? std::string("no restart after a failure")
                                   : "up to " + counted(plan.max_restarts, "restart") + " after failures";
  const std::string logs =
      plan.run_folder.empty() ? "no logs are kept" : "logs in " + plan.run_folder.string();
  return fmt::format("muster: job {}, node {}: {} here{}, this node alone\n", plan.run_id, plan.node,
                     counted(plan.workers.number, "worker"), derivation) +
         fmt::format("muster: {}; stop grace {}; {}\n", restarts, human(plan.stop_grace), logs);
}

}  // namespace muster::launcher
