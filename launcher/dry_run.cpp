#include "launcher/dry_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "agent/placement/cpu_list.hpp"
#include "agent/process/arguments.hpp"
#include "agent/process/worker_environment.hpp"
#include "launcher/option_table.hpp"

namespace muster::launcher {

namespace {

std::string field(const std::string& name, const std::string& text) {
  return fmt::format("{:<11} {}\n", name, text);
}

std::string origin_text(const OptionRow& row, const LauncherOptions& options) {
  const std::string& name = options.names.at(row.long_name);
  switch (options.origins.at(row.long_name)) {
    case Origin::flag:
      return "on the command line";
    case Origin::environment:
      return "by " + name;
    case Origin::file:
      return "in " + name.substr(0, name.rfind(": "));
    case Origin::by_default:
      break;
  }
  return "by default";
}

std::string shown_value(const OptionRow& row, const std::string& value) {
  return row.long_name == std::string("--env") ? without_secret(value) : value;
}

std::string settings_text(const LauncherOptions& options) {
  std::string text;
  for (const OptionRow& row : option_table()) {
    const auto set = options.values.find(row.long_name);
    if (set == options.values.end() || row.section == Section::information) continue;
    for (const std::string& value : set->second) {
      const std::string shown = row.is_flag() ? value == "0" ? " off" : "" : " " + shown_value(row, value);
      text += field(text.empty() ? "settings" : "",
                    fmt::format("{}{}, {}", row.long_name, shown, origin_text(row, options)));
    }
  }
  return text.empty() ? field("settings", "all by default") : text;
}

// As a shell would take it.
std::string quoted(const std::string& word) {
  const std::string plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string text = "'";
  for (const char byte : word) text += byte == '\'' ? std::string("'\\''") : std::string(1, byte);
  return text + "'";
}

std::string command_text(const Plan& plan, int local_rank) {
  std::vector<std::string> words = {plan.target.command.front()};
  const std::vector<std::string> arguments(plan.target.command.begin() + 1, plan.target.command.end());
  for (const std::string& word : agent::with_local_rank(arguments, local_rank)) words.push_back(word);
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + quoted(word);
  return text;
}

std::string rendezvous_text(const Plan& plan, const ExpectedPlace& place) {
  if (!plan.meeting) return "in this process, this node alone";
  return fmt::format("{}, {}; {}", plan.meeting->endpoint.text(),
                     place.here ? "hosted here unless a daemon answers there" : "hosted elsewhere",
                     place.why);
}

std::string store_text(const Plan& plan) {
  const std::string server =
      plan.store.in_rank_zero ? "served by worker 0" : "served by the agent of the node with group rank 0";
  return server + (plan.store.ports.any() ? ", at a port of the kernel's choice"
                                          : ", at port " + plan.store.ports.text());
}

std::string binding_text(const Placement& placement) {
  std::string text;
  for (std::size_t rank = 0; rank < placement.workers.size(); ++rank)
    if (const auto& cpus = placement.workers[rank].cpus; !cpus.empty())
      text +=
          fmt::format("{}local rank {}: CPUs {}", text.empty() ? "" : "; ", rank, agent::cpu_list_text(cpus));
  return text.empty() ? "none: each worker may use all CPUs that this process may use" : text;
}

// What the round decides, in words; of one node much is known before.
std::string known_before(const Plan& plan, const ExpectedPlace& place, const std::string& name,
                         const std::string& value) {
  static const std::set<std::string> of_the_round = {"RANK",       "GROUP_RANK",       "ROLE_RANK",
                                                     "WORLD_SIZE", "GROUP_WORLD_SIZE", "ROLE_WORLD_SIZE"};
  if (plan.meeting && of_the_round.contains(name)) return "<the round's>";
  if (name == "MASTER_ADDR" && plan.meeting)
    return place.here && !place.address.empty() ? place.address : "<address of group rank 0>";
  if (name == "MASTER_PORT") return plan.store.ports.any() ? "<a free port>" : plan.store.ports.text();
  if (name == "MUSTER_CHANNEL") return "<socket of the agent>";
  if (name == "MUSTER_AGENT") return "<mark of this job>";
  return value;
}

rendezvous::Assignment first_round(const Plan& plan) {
  rendezvous::Assignment assignment;
  assignment.round = 1;
  assignment.world_size = plan.workers.number;
  assignment.role_world_size = plan.workers.number;
  assignment.group_world_size = 1;
  assignment.master_addr = "127.0.0.1";
  assignment.max_restarts = plan.max_restarts;
  return assignment;
}

std::string worker_text(const Plan& plan, const ExpectedPlace& place, int local_rank,
                        const std::vector<std::string>& base, const std::set<std::string>& inherited) {
  agent::WorkerPlace worker;
  worker.local_rank = local_rank;
  worker.local_workers = plan.workers.number;
  worker.role = plan.role;
  worker.node = plan.node;
  worker.run_id = plan.run_id;
  if (!plan.run_folder.empty())
    worker.error_file = plan.run_folder / "round-1" /
                        fmt::format("rank-{}", plan.meeting ? "<rank>" : std::to_string(local_rank)) /
                        "error.json";
  worker.agent_mark = "MUSTER_AGENT=";
  worker.channel = "socket";
  worker.agent_store = !plan.store.in_rank_zero;
  worker.usable_cpus = plan.usable_cpus;
  if (static_cast<std::size_t>(local_rank) < plan.placement.workers.size())
    worker.visible_devices = plan.placement.workers[static_cast<std::size_t>(local_rank)].visible_devices;
  worker.virtual_local_rank = plan.placement.virtual_local_rank;
  auto entries = agent::worker_environment(base, first_round(plan), worker);
  std::sort(entries.begin(), entries.end());
  std::string text = fmt::format("\nworker {}   {}\n", local_rank, command_text(plan, local_rank));
  for (const std::string& entry : entries) {
    if (inherited.contains(entry)) continue;
    const std::string name = entry.substr(0, entry.find('='));
    const std::string value = entry.substr(std::min(entry.size(), name.size() + 1));
    text += "  " + without_secret(name + "=" + known_before(plan, place, name, value)) + "\n";
  }
  return text;
}

}  // namespace

std::string dry_run_text(const LauncherOptions& options, const Plan& plan, const ExpectedPlace& place,
                         const std::vector<std::string>& inherited) {
  std::string text = "muster: a dry run: nothing is started, bound or written\n";
  text += start_lines(plan, {place.address, place.here});
  for (const std::string& warning : warnings_of(plan, place.loopback)) text += "muster: " + warning + "\n";
  text += "\n" + settings_text(options);
  text += field("command", command_text(plan, 0));
  text += field("", plan.target.why);
  text += field("rendezvous", rendezvous_text(plan, place));
  text += field("store", store_text(plan));
  text += field("binding", binding_text(plan.placement));
  const auto gone = scrubbed_names(inherited, plan.variables);
  text += field("inherited", fmt::format("{} variable{}, {} scrubbed{}", inherited.size() - gone.size(),
                                         inherited.size() - gone.size() == 1 ? "" : "s", gone.size(),
                                         gone.empty() ? "" : fmt::format(": {}", fmt::join(gone, ", "))));
  const std::vector<std::string> base = changed(inherited, plan.variables);
  const std::set<std::string> as_they_were(inherited.begin(), inherited.end());
  for (int local_rank = 0; local_rank < plan.workers.number; ++local_rank)
    text += worker_text(plan, place, local_rank, base, as_they_were);
  return text;
}

}  // namespace muster::launcher
