// What a module with a device has to export: one function of C, by which a program first asks whether both were built
// from the same sources.
#pragma once

#include <string>

#include "trainers/device/device.hpp"

namespace muster::trainers {

/// Changes with Device, Accelerator, Communicator and what these take: a module of another build is refused, where
/// calling it would end in a crash.
constexpr int device_module_version = 1;

struct DeviceModule {
  int version = device_module_version;
  /// Either a device, which is never freed, or a problem in a sentence.
  Device* (*open)(int local_rank, std::string& problem) = nullptr;
};

using DeviceModuleEntry = const DeviceModule* (*)();
constexpr const char* device_module_entry = "muster_device_module";

}  // namespace muster::trainers
