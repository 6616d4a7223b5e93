#include "launcher/plan.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "launcher/option_values.hpp"

namespace muster::launcher {

namespace {

std::string counted(int number, const std::string& thing) {
  return fmt::format("{} {}{}", number, thing, number == 1 ? "" : "s");
}

std::string nodes_text(const Plan& plan) {
  return plan.min_nodes == plan.max_nodes ? counted(plan.max_nodes, "node")
                                          : fmt::format("{} to {} nodes", plan.min_nodes, plan.max_nodes);
}

std::string meeting_text(const Plan& plan, const Standing& standing) {
  if (!plan.meeting) return "this node alone";
  return fmt::format("{}, rendezvous {}{}", nodes_text(plan), plan.meeting->endpoint.text(),
                     standing.hosted_here ? " (hosted here)" : "");
}

/// torchrun's --shutdown-timeout counts where --stop-grace was not set, or set from further away.
Graces graces_of(const LauncherOptions& options) {
  const auto origin_of = [&](const char* name) {
    const auto found = options.origins.find(name);
    return found == options.origins.end() ? Origin::by_default : found->second;
  };
  const bool torchruns =
      options.shutdown_timeout && origin_of("--shutdown-timeout") > origin_of("--stop-grace");
  return {torchruns ? *options.shutdown_timeout : options.stop_grace,
          options.restart_grace.value_or(options.stop_grace),
          options.rescale_grace.value_or(options.stop_grace)};
}

std::string graces_text(const Graces& graces) {
  if (graces.stop == graces.restart && graces.stop == graces.rescale)
    return "stop grace " + human(graces.stop);
  return fmt::format("grace {} to stop, {} to restart, {} to rescale", human(graces.stop),
                     human(graces.restart), human(graces.rescale));
}

std::string changes_text(const rendezvous::WindowedBudget& changes) {
  const std::string count =
      changes.count == rendezvous::unlimited ? "unlimited" : std::to_string(changes.count);
  const std::string what = changes.count == 1 ? " membership change" : " membership changes";
  if (changes.count == rendezvous::unlimited) return count + what;
  return count + what + " per " + (changes.per == std::chrono::hours(1) ? "hour" : human(changes.per));
}

/// Local ranks that options of the output name, and no worker here has.
std::string ranks_without_worker(const Plan& plan) {
  std::vector<std::string> named;
  const auto look = [&](const char* option, int rank) {
    if (rank >= plan.workers.number) named.push_back(fmt::format("{} {}", option, rank));
  };
  const std::pair<const char*, const std::optional<StreamMap>&> maps[] = {
      {"--redirects", plan.output.redirects}, {"--tee", plan.output.tee}};
  for (const auto& [option, map] : maps)
    if (map)
      for (const auto& [rank, streams] : map->of_rank) look(option, rank);
  if (plan.output.console_local_ranks)
    for (const int rank : *plan.output.console_local_ranks) look("--local-ranks-filter", rank);
  if (named.empty()) return "";
  constexpr std::size_t kMostRanksNamed = 4;
  const std::string more = named.size() > kMostRanksNamed ? ", ..." : "";
  named.resize(std::min(named.size(), kMostRanksNamed));
  return fmt::format("local ranks that no worker here has: {}{}; those here are 0-{}", fmt::join(named, ", "),
                     more, plan.workers.number - 1);
}

std::filesystem::path log_place(const Plan& plan) {
  if (plan.output.file == agent::kLogFileTemplate) return plan.run_folder;
  const auto stays = [](std::string_view) { return std::optional<std::string>(); };
  return plan.run_folder / agent::fill_fields(plan.output.file, stays, plan.output.variable);
}

}  // namespace

std::string short_host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
  const std::string full = name;
  return full.substr(0, full.find('.', 1));
}

Plan make_plan(const LauncherOptions& options, const Target& target, const WorkerCount& workers,
               int usable_cpus, const std::string& run_id) {
  Plan plan;
  plan.run_id = run_id;
  plan.host = short_host_name();
  plan.min_nodes = options.min_nodes;
  plan.max_nodes = options.max_nodes;
  plan.meeting = options.meeting;
  plan.role = options.role;
  plan.without_effect = options.without_effect;
  plan.notes = options.notes;
  plan.variables = options.variables;
  plan.store = options.store;
  plan.output = options.logs;
  plan.workers = workers;
  plan.target = target;
  plan.max_restarts = options.max_restarts;
  plan.restart_window = options.restart_window;
  plan.graces = graces_of(options);
  plan.signals_to_handle = options.signals_to_handle;
  plan.health = options.health;
  plan.progress_timeout = options.progress_timeout;
  plan.expect_done = options.expect_done;
  plan.usable_cpus = usable_cpus;
  return plan;
}

std::string start_lines(const Plan& plan, const Standing& standing) {
  const std::string derivation = plan.workers.derivation.empty() ? "" : " (" + plan.workers.derivation + ")";
  const std::string restarts = plan.max_restarts == 0
                                   ? std::string("no restart after a failure")
                                   : "up to " + counted(plan.max_restarts, "restart") + " after failures";
  const std::string window =
      plan.restart_window
          ? fmt::format(", {} within {} at most", plan.restart_window->count, human(plan.restart_window->per))
          : "";
  const std::string logs =
      plan.run_folder.empty() ? "no logs are kept" : "logs in " + log_place(plan).string();
  const std::string address = standing.address.empty() ? "" : " (" + standing.address + ")";
  const std::string changes = plan.meeting ? ", " + changes_text(plan.meeting->membership_changes) : "";
  const std::string done = plan.expect_done ? "; exit code 0 counts after done() alone" : "";
  return fmt::format("muster: job {}, node {}{}: {} here{}, {}\n", plan.run_id, plan.node, address,
                     counted(plan.workers.number, "worker"), derivation, meeting_text(plan, standing)) +
         fmt::format("muster: {}{}{}{}; {}; {}\n", restarts, window, changes, done, graces_text(plan.graces),
                     logs);
}

std::vector<std::string> warnings_of(const Plan& plan, bool endpoint_is_loopback) {
  std::vector<std::string> warnings = plan.notes;
  if (const auto& idle = plan.without_effect; !idle.empty())
    warnings.push_back(fmt::format(
        "without effect here: {}; {}", fmt::join(idle.begin(), idle.end(), ", "),
        plan.meeting ? "the nodes meet at --rdzv-endpoint" : "one node needs no place to meet others"));
  if (auto warning = ranks_without_worker(plan); !warning.empty()) warnings.push_back(std::move(warning));
  if (!plan.meeting) return warnings;
  if (const auto& unknown = plan.meeting->unknown_keys; !unknown.empty())
    warnings.push_back(unknown_keys_text(unknown));
  if (endpoint_is_loopback && plan.min_nodes > 1)
    warnings.push_back(fmt::format(
        "the endpoint {} is a loopback address: no other machine can reach it, so all {} nodes must be here",
        plan.meeting->endpoint.text(), plan.min_nodes));
  return warnings;
}

}  // namespace muster::launcher
