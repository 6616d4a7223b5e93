#include "agent/placement/nvml.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>

namespace muster::agent {

namespace {

// As NVML's documentation gives them: a result of 0 is success, a device is an opaque pointer.
using Device = void*;
constexpr int kSuccess = 0;
constexpr unsigned kUuidBytes = 96;

struct PciInfo {
  std::array<char, 16> legacy_bus_id;
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  std::array<char, 32> bus_id;  // "00000000:3B:00.0"
};

class Nvml {
 public:
  explicit Nvml(const std::string& library) : library_(::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (!library_ || !load("nvmlInit_v2", init_) || !load("nvmlShutdown", shutdown_) ||
        !load("nvmlDeviceGetCount_v2", count_) || !load("nvmlDeviceGetHandleByIndex_v2", by_index_) ||
        !load("nvmlDeviceGetUUID", uuid_) || !load("nvmlDeviceGetPciInfo_v3", pci_))
      return;
    load("nvmlDeviceGetMaxMigDeviceCount", max_slices_);
    load("nvmlDeviceGetMigDeviceHandleByIndex", slice_);
    ready_ = init_() == kSuccess;
  }
  ~Nvml() {
    if (ready_) shutdown_();
    if (library_) ::dlclose(library_);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  std::vector<Gpu> gpus() const {
    std::vector<Gpu> found;
    unsigned count = 0;
    if (!ready_ || count_(&count) != kSuccess) return found;
    for (unsigned index = 0; index < count; ++index) {
      Device device = nullptr;
      if (by_index_(index, &device) != kSuccess) continue;
      const std::string address = address_of(device);
      const std::vector<std::string> slices = slices_of(device);
      for (const std::string& slice : slices) found.push_back({slice, slice, address, {}});
      if (slices.empty()) found.push_back({std::to_string(index), uuid_of(device), address, {}});
    }
    return found;
  }

 private:
  template <class Function>
  bool load(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(::dlsym(library_, name));
    return function != nullptr;
  }

  std::string uuid_of(Device device) const {
    std::array<char, kUuidBytes> text{};
    return uuid_(device, text.data(), kUuidBytes) == kSuccess ? std::string(text.data()) : "";
  }

  /// As /sys writes it: four digits of the domain, lower case.
  std::string address_of(Device device) const {
    PciInfo info{};
    if (pci_(device, &info) != kSuccess) return "";
    std::string text = info.bus_id.data();
    if (const auto colon = text.find(':'); colon > 4 && colon != std::string::npos) text.erase(0, colon - 4);
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char byte) { return static_cast<char>(std::tolower(byte)); });
    return text;
  }

  std::vector<std::string> slices_of(Device device) const {
    std::vector<std::string> found;
    unsigned most = 0;
    if (!max_slices_ || !slice_ || max_slices_(device, &most) != kSuccess) return found;
    for (unsigned index = 0; index < most; ++index) {
      Device slice = nullptr;
      if (slice_(device, index, &slice) != kSuccess) continue;
      if (std::string uuid = uuid_of(slice); !uuid.empty()) found.push_back(std::move(uuid));
    }
    return found;
  }

  void* library_;
  bool ready_ = false;
  int (*init_)() = nullptr;
  int (*shutdown_)() = nullptr;
  int (*count_)(unsigned*) = nullptr;
  int (*by_index_)(unsigned, Device*) = nullptr;
  int (*uuid_)(Device, char*, unsigned) = nullptr;
  int (*pci_)(Device, PciInfo*) = nullptr;
  int (*max_slices_)(Device, unsigned*) = nullptr;
  int (*slice_)(Device, unsigned, Device*) = nullptr;
};

}  // namespace

std::vector<Gpu> gpus_of_nvml(const std::string& library) { return Nvml(library).gpus(); }

}  // namespace muster::agent
