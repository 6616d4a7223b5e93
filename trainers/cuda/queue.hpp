// One GPU and the stream on which everything is queued: what the device and its communicators share.
#pragma once

#include <memory>
#include <string>

#include "trainers/cuda/fault.hpp"

namespace muster::trainers::cuda {

class Queue {
 public:
  /// The GPU with this index among the visible ones. Never destroyed: blocks of memory may be freed after main.
  static Fault open(int index, std::unique_ptr<Queue>& queue);

  int index() const { return index_; }
  const std::string& label() const { return label_; }  ///< "cuda:0"
  const std::string& name() const { return name_; }    ///< "cuda:0 (NVIDIA H200)"
  cudaStream_t stream() const { return stream_; }

  /// Makes the GPU the calling thread's, for which CUDA keeps one each.
  Fault enter() const;

  /// Zeros.
  Fault allocate(std::size_t bytes, std::shared_ptr<void>& block) const;
  /// Behind what is queued. The host's memory is free again when they return.
  Fault copy_in(void* device, const void* host, std::size_t bytes) const;
  Fault copy_out(void* host, const void* device, std::size_t bytes) const;
  Fault copy(void* to, const void* from, std::size_t bytes) const;
  Fault clear(void* to, std::size_t bytes) const;
  Fault wait() const;

 private:
  Queue(int index, std::string name)
      : index_(index), label_("cuda:" + std::to_string(index)), name_(std::move(name)) {}

  int index_;
  std::string label_;
  std::string name_;
  cudaStream_t stream_ = nullptr;
};

}  // namespace muster::trainers::cuda
