#include "launcher/slurm.hpp"

#include <fmt/format.h>

#include "base/endpoint.hpp"

namespace muster::launcher {

namespace {

std::optional<long> number(const Environment& environment, const char* name) {
  const auto text = environment(name);
  const auto parsed = text ? parse_integer(*text, 1, INT32_MAX) : Result<long>(Error{});
  if (!parsed) return std::nullopt;
  return *parsed;
}

}  // namespace

std::vector<std::string> slurm_warnings(const LauncherOptions& options, const Environment& environment) {
  std::vector<std::string> warnings;
  const auto tasks = number(environment, "SLURM_NTASKS");
  const auto per_node = number(environment, "SLURM_NTASKS_PER_NODE");
  auto nodes = number(environment, "SLURM_JOB_NUM_NODES");
  if (!nodes) nodes = number(environment, "SLURM_NNODES");

  if (tasks && per_node && *tasks < *per_node * nodes.value_or(1))
    warnings.push_back(fmt::format(
        "SLURM_NTASKS={} and SLURM_NTASKS_PER_NODE={} do not agree{}: Slurm starts {} launcher{} in all, and "
        "nodes "
        "may be missing; give srun --ntasks-per-node=1, muster starts the workers itself",
        *tasks, *per_node, nodes ? fmt::format(" on {} node{}", *nodes, *nodes == 1 ? "" : "s") : "", *tasks,
        *tasks == 1 ? "" : "s"));
  else if (per_node && *per_node > 1 && environment("SLURM_PROCID"))
    warnings.push_back(
        fmt::format("SLURM_NTASKS_PER_NODE={}: Slurm starts {} launchers on each node, and each of them is a "
                    "node of the job; "
                    "give srun --ntasks-per-node=1, muster starts the workers itself",
                    *per_node, *per_node));
  if (nodes && options.min_nodes > *nodes && environment("SLURM_JOB_ID"))
    warnings.push_back(
        fmt::format("--nnodes asks for at least {} nodes, and Slurm's job has {} (SLURM_JOB_NUM_NODES): the "
                    "others must come from "
                    "elsewhere, or the join deadline ends this",
                    options.min_nodes, *nodes));
  return warnings;
}

}  // namespace muster::launcher
