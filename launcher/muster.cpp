// muster: starts a program once for each rank, on this node, and sees it through to its end.
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "agent/report/report.hpp"
#include "launcher/help.hpp"
#include "launcher/node_id.hpp"
#include "launcher/options.hpp"
#include "launcher/plan.hpp"
#include "launcher/run_folder.hpp"
#include "launcher/run_job.hpp"
#include "launcher/target.hpp"

namespace {

using namespace muster;
using namespace muster::launcher;

int complain(const Error& error, int exit_code) {
  std::fprintf(stderr, "muster: %s\n", error.sentence().c_str());
  return exit_code;
}

int print(const std::string& text) {
  const bool printed = std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  return printed ? 0 : agent::kLauncherFailedExitCode;
}

int launch(const std::vector<std::string>& words) {
  const Environment environment = process_environment();
  const auto options = parse_command_line(words, environment);
  if (!options) return complain(options.error(), agent::kUsageExitCode);
  if (options->help) return print(help_text());
  if (options->version) return print("muster " MUSTER_VERSION "\n");

  // All that can be known to be wrong is said before any worker starts.
  const auto target = find_target(*options, environment);
  if (!target) return complain(target.error(), exit_code_of_missing_target(target.error()));
  const UsableResources resources = usable_resources(environment);
  const auto workers = count_workers(options->workers, resources);
  if (!workers) return complain(workers.error(), agent::kUsageExitCode);
  const std::string run_id = run_id_of(*options);
  const NodeName node = take_node_name(*options, run_id, short_host_name(), environment);
  Plan plan = make_plan(*options, *target, *workers, usable_cpus(resources), run_id, node.id);
  const auto folder = make_run_folder(*options, plan.run_id, plan.node, environment);
  if (!folder) return complain(folder.error(), agent::kLauncherFailedExitCode);
  plan.run_folder = *folder;

  auto guard = agent::Guard::start();
  if (!guard) return complain(guard.error(), agent::kLauncherFailedExitCode);
  return run_job(std::move(plan), *guard);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return launch({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    return complain(Error{"this launcher failed", error.what(), "the workers are ended with it"},
                    agent::kLauncherFailedExitCode);
  }
}
