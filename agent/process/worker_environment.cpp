#include "agent/process/worker_environment.hpp"

#include <algorithm>
#include <string_view>

#include "base/worker_lines.hpp"

namespace muster::agent {

namespace {

std::string_view name_of(std::string_view entry) { return entry.substr(0, entry.find('=')); }

bool names(const std::vector<std::string>& entries, std::string_view name) {
  return std::any_of(entries.begin(), entries.end(),
                     [name](const std::string& entry) { return name_of(entry) == name; });
}

std::vector<std::string> ours(const rendezvous::Assignment& assignment, const WorkerPlace& place) {
  std::vector<std::string> entries;
  const auto text = [&](const char* name, const std::string& value) {
    entries.push_back(std::string(name) + "=" + value);
  };
  const auto number = [&](const char* name, int value) { text(name, std::to_string(value)); };

  number("LOCAL_RANK", place.virtual_local_rank ? 0 : place.local_rank);
  number("RANK", assignment.first_rank + place.local_rank);
  number("GROUP_RANK", assignment.group_rank);
  number("ROLE_RANK", assignment.first_role_rank + place.local_rank);
  text("ROLE_NAME", place.role);
  number("LOCAL_WORLD_SIZE", place.local_workers);
  number("WORLD_SIZE", assignment.world_size);
  number("GROUP_WORLD_SIZE", assignment.group_world_size);
  number("ROLE_WORLD_SIZE", assignment.role_world_size);
  text("MASTER_ADDR", assignment.master_addr);
  number("MASTER_PORT", assignment.master_port);
  number("TORCHELASTIC_RESTART_COUNT", assignment.restart_count);
  number("TORCHELASTIC_MAX_RESTARTS", assignment.max_restarts);
  text("TORCHELASTIC_RUN_ID", place.run_id);
  // PyTorch compares with exactly this text.
  text("TORCHELASTIC_USE_AGENT_STORE", place.agent_store ? "True" : "False");
  text("TORCHELASTIC_ERROR_FILE", place.error_file);
  number("MUSTER_ROUND", assignment.round);
  text("MUSTER_NODE", place.node);
  if (place.visible_devices) text("CUDA_VISIBLE_DEVICES", *place.visible_devices);
  if (!place.channel.empty()) text(kWorkerChannelVariable, place.channel);
  if (!place.agent_mark.empty()) entries.push_back(place.agent_mark);
  return entries;
}

}  // namespace

std::vector<std::string> worker_environment(const std::vector<std::string>& inherited,
                                            const rendezvous::Assignment& assignment,
                                            const WorkerPlace& place) {
  const std::vector<std::string> added = ours(assignment, place);
  std::vector<std::string> entries;
  entries.reserve(inherited.size() + added.size() + 3);
  for (const std::string& entry : inherited)
    if (!names(added, name_of(entry))) entries.push_back(entry);
  entries.insert(entries.end(), added.begin(), added.end());

  const auto unless_set = [&](std::string_view name, const std::string& value) {
    if (!names(inherited, name)) entries.push_back(std::string(name) + "=" + value);
  };
  unless_set("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  unless_set("PYTHONUNBUFFERED", "1");
  unless_set("OMP_NUM_THREADS",
             std::to_string(std::max(1, place.usable_cpus / std::max(1, place.local_workers))));
  return entries;
}

}  // namespace muster::agent
