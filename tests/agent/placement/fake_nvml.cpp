// Stands in for NVIDIA's library: two GPUs, the second one cut into two slices.
#include <cstdio>
#include <cstring>

namespace {
struct PciInfo {
  char legacy_bus_id[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
int devices[4];  // their addresses stand for GPU 0, GPU 1, and the slices of GPU 1
constexpr int kNotFound = 6;

long number_of(void* device) { return static_cast<int*>(device) - devices; }
}  // namespace

extern "C" {
int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = devices + index;
  return 0;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  const long number = number_of(device);
  std::snprintf(text, size, number < 2 ? "GPU-000%ld" : "MIG-1-%ld", number < 2 ? number : number - 2);
  return 0;
}
int nvmlDeviceGetPciInfo_v3(void* device, PciInfo* info) {
  std::strcpy(info->bus_id, number_of(device) == 0 ? "00000000:3B:00.0" : "00000000:AF:00.0");
  return 0;
}
int nvmlDeviceGetMaxMigDeviceCount(void* device, unsigned* count) {
  *count = number_of(device) == 1 ? 7 : 0;
  return 0;
}
int nvmlDeviceGetMigDeviceHandleByIndex(void*, unsigned index, void** slice) {
  if (index > 1) return kNotFound;
  *slice = devices + 2 + index;
  return 0;
}
}
