#include "agent/placement/visible_devices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/endpoint.hpp"

namespace muster::agent {

namespace {

constexpr long kMaxDevices = 4096;

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t comma = std::min(list.find(',', begin), list.size());
    std::string part = list.substr(begin, comma - begin);
    part.erase(0, part.find_first_not_of(' '));
    part.erase(part.find_last_not_of(' ') + 1);
    parts.push_back(std::move(part));
    begin = comma + 1;
  }
  return parts;
}

std::vector<std::string> as_cuda_reads(const std::string& list) {
  std::vector<std::string> names = split(list);
  names.erase(std::find_if(names.begin(), names.end(),
                           [](const std::string& name) { return name.empty() || name == "-1"; }),
              names.end());
  return names;
}

bool is_number(const std::string& name) { return static_cast<bool>(parse_integer(name, 0, kMaxDevices)); }

/// The same device: by name, or one is the beginning of the other (UUIDs may be cut short), or the machine knows both.
bool same_device(const std::string& a, const std::string& b, const std::vector<Gpu>& machine) {
  if (a == b) return true;
  if (!is_number(a) && !is_number(b)) return a.starts_with(b) || b.starts_with(a);
  const Gpu* first = gpu_called(a, machine);
  return first != nullptr && first == gpu_called(b, machine);
}

Result<std::string> found(const std::string& name) { return {boost::system::in_place_value, name}; }

Result<std::string> choose(const std::string& wanted, const std::vector<std::string>& from,
                           const std::vector<Gpu>& machine) {
  if (const auto position = parse_integer(wanted, 0, kMaxDevices)) {
    if (static_cast<std::size_t>(*position) < from.size())
      return found(from[static_cast<std::size_t>(*position)]);
    return Error{
        "--gpus", fmt::format("there is no GPU {}", wanted),
        from.empty() ? "this process may use none" : fmt::format("they are 0 to {}", from.size() - 1)};
  }
  for (const std::string& name : from)
    if (same_device(wanted, name, machine)) return found(wanted.starts_with(name) ? wanted : name);
  return Error{"--gpus", fmt::format("there is no GPU {} among those that this process may use", wanted),
               fmt::format("they are {}", from.empty() ? "none" : fmt::format("{}", fmt::join(from, ", ")))};
}

}  // namespace

const Gpu* gpu_called(const std::string& name, const std::vector<Gpu>& machine) {
  if (name.empty()) return nullptr;
  const auto found = std::find_if(machine.begin(), machine.end(), [&](const Gpu& gpu) {
    return gpu.name == name || (!is_number(name) && gpu.uuid.starts_with(name));
  });
  return found == machine.end() ? nullptr : &*found;
}

Result<Devices> choose_devices(const DeviceWish& wish, const std::vector<Gpu>& machine) {
  Devices devices;
  if (wish.inherited) {
    devices.names = as_cuda_reads(*wish.inherited);
  } else {
    for (const Gpu& gpu : machine) devices.names.push_back(gpu.name);
  }
  if (!wish.chosen) return devices;
  const std::vector<std::string> usable = std::exchange(devices.names, {});
  devices.restricted = true;
  for (const std::string& wanted : split(*wish.chosen)) {
    auto name = choose(wanted, usable, machine);
    if (!name) return name.error();
    if (std::find(devices.names.begin(), devices.names.end(), *name) != devices.names.end())
      return Error{"--gpus", fmt::format("GPU {} is named twice", *name)};
    devices.names.push_back(std::move(*name));
  }
  return devices;
}

Result<std::vector<std::optional<std::string>>> visible_to_workers(const DeviceWish& wish,
                                                                   const Devices& devices,
                                                                   int local_workers) {
  std::vector<std::optional<std::string>> visible(static_cast<std::size_t>(local_workers));
  const bool none_known = devices.names.empty() && !wish.inherited && !wish.chosen;
  if (wish.one_each && !none_known && devices.names.size() < visible.size())
    return Error{"one GPU for each worker",
                 fmt::format("{} workers, {} GPUs", visible.size(), devices.names.size()),
                 devices.names.empty() ? "CUDA_VISIBLE_DEVICES hides all of them"
                                       : fmt::format("they are {}", fmt::join(devices.names, ", "))};
  for (std::size_t local_rank = 0; local_rank < visible.size(); ++local_rank) {
    if (wish.one_each)
      visible[local_rank] = none_known ? std::to_string(local_rank) : devices.names[local_rank];
    else if (devices.restricted)
      visible[local_rank] = fmt::format("{}", fmt::join(devices.names, ","));
  }
  return visible;
}

}  // namespace muster::agent
