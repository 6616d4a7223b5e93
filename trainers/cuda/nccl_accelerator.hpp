// GPUs connected by NCCL, as the SDK's groups take them.
#pragma once

#include "trainers/cuda/queue.hpp"

namespace muster::trainers::cuda {

class NcclAccelerator final : public worker::Accelerator {
 public:
  explicit NcclAccelerator(const Queue& queue) : queue_(queue) {}

  std::string name() const override { return queue_.name(); }
  std::string backend() const override { return "nccl"; }
  Fault copy_in(void* device, const void* host, std::size_t bytes) override {
    return queue_.copy_in(device, host, bytes);
  }
  Fault copy_out(void* host, const void* device, std::size_t bytes) override {
    return queue_.copy_out(host, device, bytes);
  }
  Fault make_connection_id(std::string& id) override;
  Fault connect(const std::string& id, int rank, int size, std::chrono::milliseconds timeout,
                std::unique_ptr<worker::Communicator>& communicator) override;

 private:
  const Queue& queue_;
};

}  // namespace muster::trainers::cuda
