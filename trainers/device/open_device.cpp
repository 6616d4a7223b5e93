#include "trainers/device/open_device.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <stdexcept>

#include "trainers/device/device_module.hpp"

namespace muster::trainers {
namespace {

constexpr const char* kModule = "libmuster_cuda.so";

[[noreturn]] void refuse(const std::string& why) {
  throw std::invalid_argument("--device=cuda: " + why + "; --device=cpu needs none");
}

const DeviceModule& load(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    refuse(fmt::format("there is no {}: this muster was built without CUDA", path.string()));
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) refuse(fmt::format("its module cannot be loaded: {}", ::dlerror()));
  const auto entry = reinterpret_cast<DeviceModuleEntry>(::dlsym(library, device_module_entry));
  if (!entry)
    refuse(fmt::format("{} is no module of muster's: it has no {}", path.string(), device_module_entry));
  const auto& module = *entry();
  if (module.version != device_module_version)
    refuse(fmt::format("{} is of another build (version {}, expected {}); build both anew", path.string(),
                       module.version, device_module_version));
  return module;
}

}  // namespace

std::filesystem::path module_path() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) refuse("/proc/self/exe cannot be read: " + error.message());
  return program.parent_path() / kModule;
}

Device& open_module(const std::filesystem::path& module, int local_rank) {
  std::string problem;
  auto* device = load(module).open(local_rank, problem);
  if (!device) refuse(problem);
  return *device;
}

Device& open_device(const std::string& name, int local_rank) {
  if (name == "cpu") return cpu_device();
  if (name == "cuda") return open_module(module_path(), local_rank);
  throw std::invalid_argument("--device=" + name + ": cpu or cuda is expected");
}

}  // namespace muster::trainers
