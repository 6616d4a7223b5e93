// The module's one door.
#include <fmt/format.h>

#include <cstdlib>

#include "trainers/cuda/cuda_device.hpp"
#include "trainers/device/choose_gpu.hpp"
#include "trainers/device/device_module.hpp"

namespace muster::trainers::cuda {
namespace {

std::optional<std::string> visible_devices() {
  const char* value = std::getenv("CUDA_VISIBLE_DEVICES");
  return value ? std::optional<std::string>(value) : std::nullopt;
}

Fault count_gpus(int& count) {
  const auto code = cudaGetDeviceCount(&count);
  if (code == cudaErrorNoDevice) {
    count = 0;
    return {};
  }
  auto fault = fault_of(code, MUSTER_CALL_SITE("CUDA", "cudaGetDeviceCount"));
  if (fault) return "no GPU can be used here: " + *fault;
  return {};
}

Device* open(int local_rank, std::string& problem) {
  int count = 0;
  if (const auto fault = count_gpus(count)) {
    problem = *fault;
    return nullptr;
  }
  const auto choice = choose_gpu(count, local_rank, visible_devices());
  if (!choice.problem.empty()) {
    problem = choice.problem;
    return nullptr;
  }
  std::unique_ptr<Queue> queue;
  if (const auto fault = Queue::open(choice.index, queue)) {
    problem = *fault;
    return nullptr;
  }
  return new CudaDevice(std::move(queue));  // never freed: blocks of its memory may be, after main
}

const DeviceModule the_module{.version = device_module_version, .open = open};

}  // namespace
}  // namespace muster::trainers::cuda

extern "C" __attribute__((visibility("default"))) const muster::trainers::DeviceModule*
muster_device_module() {
  return &muster::trainers::cuda::the_module;
}
