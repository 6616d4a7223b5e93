#include "launcher/placement.hpp"

#include <fmt/format.h>

#include "agent/placement/numa_binding.hpp"

namespace muster::launcher {

namespace {

constexpr std::size_t kMostNamed = 16;

std::filesystem::path machine_root(const Environment& environment) {
  return environment(kMachineRootVariable).value_or("/");
}

bool gpus_matter(const LauncherOptions& options) {
  using Way = WorkerCountWish::Way;
  return options.gpus || options.isolate_gpus || options.virtual_local_rank || options.numa_binding ||
         options.workers.way == Way::automatic || options.workers.way == Way::gpu;
}

/// By local rank.
std::vector<std::optional<int>> nodes_of_devices(const MachineDevices& devices, int local_workers) {
  std::vector<std::optional<int>> nodes;
  for (std::size_t local_rank = 0; local_rank < static_cast<std::size_t>(local_workers); ++local_rank) {
    const bool has_one = local_rank < devices.usable.names.size();
    const agent::Gpu* gpu =
        has_one ? agent::gpu_called(devices.usable.names[local_rank], devices.gpus) : nullptr;
    nodes.push_back(gpu ? gpu->numa_node : std::nullopt);
  }
  return nodes;
}

void bind(Placement& placement, NumaMode mode, const MachineDevices& devices,
          const std::filesystem::path& root) {
  const auto topology = agent::read_topology(root, agent::allowed_cpus());
  if (!topology) {
    placement.notes.push_back("--numa-binding: nobody is bound: " + topology.error().sentence());
    return;
  }
  const int local_workers = static_cast<int>(placement.workers.size());
  const agent::Binding binding =
      agent::bind_workers({mode, local_workers, nodes_of_devices(devices, local_workers)}, *topology);
  for (std::size_t local_rank = 0; local_rank < placement.workers.size(); ++local_rank)
    placement.workers[local_rank].cpus = binding.workers[local_rank].cpus;
  placement.notes.push_back("bound: " + agent::binding_text(binding));
  for (const std::string& note : binding.notes) placement.notes.push_back("--numa-binding: " + note);
}

std::string gpus_text(const Placement& placement) {
  std::string text;
  const std::size_t named = std::min(placement.workers.size(), kMostNamed);
  for (std::size_t local_rank = 0; local_rank < named; ++local_rank)
    text += fmt::format("{}{}: {}", local_rank == 0 ? "GPUs: local rank " : ", ", local_rank,
                        *placement.workers[local_rank].visible_devices);
  return placement.workers.size() > named ? text + ", and so on" : text;
}

}  // namespace

Result<MachineDevices> look_at_devices(const LauncherOptions& options, const Environment& environment,
                                       UsableResources& resources) {
  MachineDevices devices;
  if (!gpus_matter(options)) return devices;
  const auto root = machine_root(environment);
  agent::GpuSources sources{root, root == "/" ? agent::GpuSources().nvml : ""};
  devices.gpus = agent::find_gpus(sources);
  devices.wish = {options.gpus, environment("CUDA_VISIBLE_DEVICES"),
                  options.isolate_gpus || options.virtual_local_rank};
  auto usable = agent::choose_devices(devices.wish, devices.gpus);
  if (!usable) return usable.error();
  devices.usable = std::move(*usable);
  resources.gpu_devices = static_cast<int>(devices.gpus.size());
  if (devices.usable.restricted)
    resources.visible_devices = fmt::format("{}", fmt::join(devices.usable.names, ","));
  return devices;
}

Result<Placement> place_workers(const LauncherOptions& options, const MachineDevices& devices,
                                const Environment& environment, int local_workers) {
  Placement placement;
  placement.virtual_local_rank = options.virtual_local_rank;
  auto visible = agent::visible_to_workers(devices.wish, devices.usable, local_workers);
  if (!visible) return visible.error();
  for (auto& devices_of_one : *visible) placement.workers.push_back({{}, std::move(devices_of_one)});
  if (devices.wish.one_each)
    placement.notes.push_back(gpus_text(placement));
  else if (devices.usable.restricted)
    placement.notes.push_back(fmt::format("GPUs: {} for each worker", fmt::join(devices.usable.names, ",")));
  if (options.numa_binding) bind(placement, *options.numa_binding, devices, machine_root(environment));
  return placement;
}

}  // namespace muster::launcher
