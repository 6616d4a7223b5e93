// Bringing a batch to where the model is.
#pragma once

#include "trainers/tensor/tensor.hpp"

namespace muster::trainers {

/// `host` itself where the device computes there; else its numbers in `moved`, whose memory is used again.
inline Tensor& on_device(Device& device, Tensor& host, Tensor& moved) {
  if (&device == &host.device()) return host;
  moved.resize(host.shape(), device);
  moved.copy_from(host);
  return moved;
}

}  // namespace muster::trainers
