#include "launcher/plan.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "launcher/run_folder.hpp"

namespace muster::launcher {

namespace {

std::string counted(int number, const std::string& thing) {
  return fmt::format("{} {}{}", number, thing, number == 1 ? "" : "s");
}

// For people and for the node's id; nothing resolves it.
std::string short_host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
  const std::string full = name;
  return full.substr(0, full.find('.', 1));
}

}  // namespace

Plan make_plan(const LauncherOptions& options, const Target& target, const WorkerCount& workers,
               int usable_cpus) {
  Plan plan;
  plan.run_id = options.run_id.empty() ? fresh_run_id() : options.run_id;
  plan.host = short_host_name();
  plan.node = options.node_id.empty() ? plan.host : options.node_id;
  plan.workers = workers;
  plan.target = target;
  plan.max_restarts = options.max_restarts;
  plan.stop_grace = options.stop_grace;
  plan.usable_cpus = usable_cpus;
  return plan;
}

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
