// muster: starts a program once for each rank, on this node, and sees it through to its end.
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <boost/system/system_error.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "agent/report/report.hpp"
#include "base/standard_output.hpp"
#include "launcher/answers.hpp"
#include "launcher/dry_run.hpp"
#include "launcher/expected_place.hpp"
#include "launcher/node_id.hpp"
#include "launcher/options.hpp"
#include "launcher/plan.hpp"
#include "launcher/run_folder.hpp"
#include "launcher/run_job.hpp"
#include "launcher/slurm.hpp"
#include "launcher/target.hpp"

namespace {

using namespace muster;
using namespace muster::launcher;

int complain(const Error& error, int exit_code) {
  std::fprintf(stderr, "muster: %s\n", error.sentence().c_str());
  return exit_code;
}

int print(const std::string& text) {
  static_cast<void>(std::fputs(text.c_str(), stdout));
  return flush_standard_output("muster") ? 0 : agent::kLauncherFailedExitCode;
}

// --dry-run: as far as it can be known without starting, binding or making anything.
int rehearse(const LauncherOptions& options, Plan plan, const Environment& environment) {
  plan.node = options.node_id.empty() ? plan.host : options.node_id;
  const auto folder = expected_run_folder(options, plan.run_id, plan.node, environment);
  if (!folder) return complain(folder.error(), agent::kLauncherFailedExitCode);
  plan.run_folder = *folder;
  const ExpectedPlace place = plan.meeting ? expected_place(*plan.meeting) : ExpectedPlace{};
  return print(dry_run_text(options, plan, place, own_environment()));
}

/// From here on; a parent that died before is known by its number.
Result<void> die_with(pid_t parent) {
  if (::prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) return errno_error("--die-with-parent", errno);
  if (::getppid() != parent) ::raise(SIGTERM);
  return {};
}

int launch(const std::vector<std::string>& words, pid_t parent) {
  const Environment environment = process_environment();
  const auto options = parse_command_line(words, environment);
  if (!options) return complain(options.error(), agent::kUsageExitCode);
  if (const auto answer = answer_to(*options, MUSTER_VERSION)) return print(*answer);

  if (options->die_with_parent)
    if (const auto bound = die_with(parent); !bound)
      return complain(bound.error(), agent::kLauncherFailedExitCode);

  // All that can be known to be wrong is said before any worker starts.
  const auto target = find_target(*options, environment);
  if (!target) return complain(target.error(), exit_code_of_missing_target(target.error()));
  UsableResources resources = usable_resources(environment);
  const auto devices = look_at_devices(*options, environment, resources);
  if (!devices) return complain(devices.error(), agent::kUsageExitCode);
  const auto workers = count_workers(options->workers, resources);
  if (!workers) return complain(workers.error(), agent::kUsageExitCode);
  auto placement = place_workers(*options, *devices, environment, workers->number);
  if (!placement) return complain(placement.error(), agent::kUsageExitCode);
  const std::string run_id = run_id_of(*options);
  Plan plan = make_plan(*options, *target, *workers, usable_cpus(resources), run_id);
  for (std::string& warning : slurm_warnings(*options, environment)) plan.notes.push_back(std::move(warning));
  plan.notes.insert(plan.notes.end(), placement->notes.begin(), placement->notes.end());
  plan.placement = std::move(*placement);
  if (options->die_with_parent) plan.dies_with = parent;
  if (options->dry_run) return rehearse(*options, std::move(plan), environment);

  // From here on there is something to lose: a closed pipe is an error of a write (the agent sees to it later, too).
  ::signal(SIGPIPE, SIG_IGN);
  auto guard = agent::Guard::start();
  if (!guard) return complain(guard.error(), agent::kLauncherFailedExitCode);
  // After the guard was forked: it must not hold the locks of a launcher that is gone.
  const NodeName node = take_node_name(*options, run_id, plan.host, environment);
  plan.node = node.id;
  const auto folder = make_run_folder(*options, run_id, plan.node, environment);
  if (!folder) return complain(folder.error(), agent::kLauncherFailedExitCode);
  plan.run_folder = folder->path;
  if (!folder->note.empty()) plan.notes.push_back(folder->note);
  return run_job(std::move(plan), *guard);
}

/// Else the first socket that is opened here would become a worker's standard input.
void open_standard_input() {
  if (::fcntl(STDIN_FILENO, F_GETFD) < 0) static_cast<void>(::open("/dev/null", O_RDONLY));
}

}  // namespace

int main(int argc, char** argv) {
  const pid_t parent = ::getppid();
  open_standard_input();
  try {
    return launch({argv + 1, argv + argc}, parent);
  } catch (const boost::system::system_error& error) {
    const bool few = error.code() == boost::system::errc::too_many_files_open;
    return complain(
        Error{"this launcher failed", few ? errno_text(EMFILE) : error.what(),
              few ? "raise the limit of open files, `ulimit -n`" : "the workers are ended with it"},
        agent::kLauncherFailedExitCode);
  } catch (const std::exception& error) {
    return complain(Error{"this launcher failed", error.what(), "the workers are ended with it"},
                    agent::kLauncherFailedExitCode);
  }
}
