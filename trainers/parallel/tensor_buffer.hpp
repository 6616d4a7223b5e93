// A tensor as a process group takes it.
#pragma once

#include "muster/worker/process_group.hpp"
#include "trainers/tensor/tensor.hpp"

namespace muster::trainers {

/// The first `count` elements of the type in the block's memory.
inline worker::Buffer buffer_of(Tensor& block, worker::ElementType type, std::int64_t count) {
  return {block.data(), static_cast<std::size_t>(count), type, block.device().place()};
}

inline worker::Buffer buffer_of(Tensor& tensor) {
  return buffer_of(tensor, worker::ElementType::f32, tensor.count());
}

}  // namespace muster::trainers
