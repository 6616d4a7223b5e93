// A tensor as a process group takes it.
#pragma once

#include <string>
#include <vector>

#include "muster/worker/process_group.hpp"
#include "trainers/tensor/parameter.hpp"
#include "trainers/tensor/tensor.hpp"

namespace muster::trainers {

/// The first `count` elements of the type in the block's memory.
inline worker::Buffer buffer_of(Tensor& block, worker::ElementType type, std::int64_t count) {
  return {block.data(), static_cast<std::size_t>(count), type, block.device().place()};
}

inline worker::Buffer buffer_of(Tensor& tensor) {
  return buffer_of(tensor, worker::ElementType::f32, tensor.count());
}

/// "gradients of 0.weight to 2.bias": what a buffer of several parameters' numbers is called.
inline std::string numbers_of(const char* kind, const std::vector<Parameter*>& parameters) {
  if (parameters.empty()) return kind;
  const auto& first = parameters.front()->name;
  const auto& last = parameters.back()->name;
  return std::string(kind) + " of " + first + (first == last ? "" : " to " + last);
}

}  // namespace muster::trainers
