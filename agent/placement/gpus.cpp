#include "agent/placement/gpus.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>

#include "agent/placement/nvml.hpp"
#include "base/endpoint.hpp"

namespace muster::agent {

namespace {

namespace fs = std::filesystem;

/// "Device Minor: \t 0" and its like.
std::map<std::string, std::string> fields_of(const fs::path& path) {
  std::map<std::string, std::string> fields;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const auto value = line.find_first_not_of(" \t", colon + 1);
    fields[line.substr(0, colon)] = value == std::string::npos ? "" : line.substr(value);
  }
  return fields;
}

std::vector<Gpu> of_the_driver(const fs::path& root) {
  std::map<std::string, std::string> uuids;  // by PCI address, so in its order
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root / "proc/driver/nvidia/gpus", error))
    uuids[entry.path().filename()] = fields_of(entry.path() / "information")["GPU UUID"];
  std::vector<Gpu> gpus;
  for (const auto& [address, uuid] : uuids)
    gpus.push_back({std::to_string(gpus.size()), uuid.starts_with("GPU-") ? uuid : "", address, {}});
  return gpus;
}

std::vector<Gpu> of_device_files(const fs::path& root) {
  std::vector<Gpu> gpus;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root / "dev", error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("nvidia") && parse_integer(name.substr(6), 0, 4096))
      gpus.push_back({std::to_string(gpus.size()), "", "", {}});
  }
  return gpus;
}

/// -1, which the kernel says where the firmware does not, is node 0, as for torchrun.
std::optional<int> node_of(const fs::path& root, const std::string& pci_address) {
  std::ifstream file(root / "sys/bus/pci/devices" / pci_address / "numa_node");
  int node = 0;
  if (pci_address.empty() || !(file >> node)) return std::nullopt;
  return std::max(node, 0);
}

}  // namespace

std::vector<Gpu> find_gpus(const GpuSources& sources) {
  std::vector<Gpu> gpus = sources.nvml.empty() ? std::vector<Gpu>() : gpus_of_nvml(sources.nvml);
  if (gpus.empty()) gpus = of_the_driver(sources.root);
  if (gpus.empty()) gpus = of_device_files(sources.root);
  for (Gpu& gpu : gpus) gpu.numa_node = node_of(sources.root, gpu.pci_address);
  return gpus;
}

}  // namespace muster::agent
