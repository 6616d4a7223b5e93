// From `--device` to a device.
//
// The CUDA half is a shared module beside the program, opened only when it is asked for: so a program needs neither
// CUDA's libraries nor a GPU to start, and is built without them (docs/design/devices.md).
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "trainers/device/device.hpp"

namespace muster::trainers {

/// The device with this name: "cpu" or "cuda". Lives until the process ends. Throws std::invalid_argument, in a sentence
/// for the user, where it cannot be had: then no restart helps.
Device& open_device(const std::string& name, int local_rank);

/// As open_device("cuda", ...), from this module.
Device& open_module(const std::filesystem::path& module, int local_rank);

/// Where the module is looked for: beside the program.
std::filesystem::path module_path();

}  // namespace muster::trainers
