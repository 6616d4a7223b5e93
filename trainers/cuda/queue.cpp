#include "trainers/cuda/queue.hpp"

#include <fmt/format.h>

namespace muster::trainers::cuda {

Fault Queue::open(int index, std::unique_ptr<Queue>& queue) {
  const auto label = fmt::format("cuda:{}", index);
  cudaDeviceProp properties{};
  if (auto fault = MUSTER_CHECKED(label, cudaSetDevice(index))) return fault;
  if (auto fault = MUSTER_CHECKED(label, cudaGetDeviceProperties(&properties, index))) return fault;
  std::unique_ptr<Queue> opened(new Queue(index, fmt::format("{} ({})", label, properties.name)));
  if (auto fault = MUSTER_CHECKED(label, cudaStreamCreateWithFlags(&opened->stream_, cudaStreamNonBlocking)))
    return fault;
  queue = std::move(opened);
  return {};
}

Fault Queue::enter() const { return MUSTER_CHECKED(label_, cudaSetDevice(index_)); }

Fault Queue::allocate(std::size_t bytes, std::shared_ptr<void>& block) const {
  if (auto fault = enter()) return fault;
  void* data = nullptr;
  if (auto fault = MUSTER_CHECKED(label_, cudaMalloc(&data, bytes)))
    return fmt::format("{} ({} bytes)", *fault, bytes);
  // It waits for what is queued. A failure is an earlier call's, and comes out at the next one.
  block = std::shared_ptr<void>(data, [](void* p) { static_cast<void>(cudaFree(p)); });
  return clear(data, bytes);
}

Fault Queue::copy_in(void* device, const void* host, std::size_t bytes) const {
  if (bytes == 0) return {};
  if (auto fault = enter()) return fault;
  if (auto fault =
          MUSTER_CHECKED(label_, cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_)))
    return fault;
  return wait();
}

Fault Queue::copy_out(void* host, const void* device, std::size_t bytes) const {
  if (bytes == 0) return {};
  if (auto fault = enter()) return fault;
  if (auto fault =
          MUSTER_CHECKED(label_, cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream_)))
    return fault;
  return wait();
}

Fault Queue::copy(void* to, const void* from, std::size_t bytes) const {
  if (bytes == 0) return {};
  if (auto fault = enter()) return fault;
  return MUSTER_CHECKED(label_, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_));
}

Fault Queue::clear(void* to, std::size_t bytes) const {
  if (bytes == 0) return {};
  if (auto fault = enter()) return fault;
  return MUSTER_CHECKED(label_, cudaMemsetAsync(to, 0, bytes, stream_));
}

Fault Queue::wait() const { return MUSTER_CHECKED(label_, cudaStreamSynchronize(stream_)); }

}  // namespace muster::trainers::cuda
