// Modules as they should not be, one for each word that is defined.
#include "trainers/device/device_module.hpp"

#ifndef TEST_NO_MODULE
namespace {

muster::trainers::Device* refuse(int local_rank, std::string& problem) {
  problem = "no device for local rank " + std::to_string(local_rank) + " in this test";
  return nullptr;
}

#ifdef TEST_OTHER_MODULE
constexpr int version = 1'000'000;
#else
constexpr int version = muster::trainers::device_module_version;
#endif
const muster::trainers::DeviceModule the_module{.version = version, .open = refuse};

}  // namespace

extern "C" const muster::trainers::DeviceModule* muster_device_module() { return &the_module; }
#endif
