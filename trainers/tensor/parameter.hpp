// A trainable tensor: its value, its gradient, and who wants to know that the gradient is there.
#pragma once

#include <functional>
#include <string>

#include "trainers/tensor/matmul.hpp"

namespace muster::trainers {

struct Parameter {
  explicit Parameter(std::string local_name, Shape shape)
      : name(std::move(local_name)), value(shape), gradient(std::move(shape)) {}

  std::string name;  ///< as PyTorch's state_dict would have it: "0.weight"
  Tensor value;
  /// Data parallelism puts a part of a bucket here.
  Tensor gradient;
  /// Whether the next backward pass overwrites the gradient or adds to it.
  Into into = Into::overwrite;

  /// Called in the backward pass as soon as `gradient` is complete, in reverse order of use: last layer
  /// first. Empty when nobody asked.
  std::function<void(Parameter&)> on_gradient_ready;

  /// Value and gradient come to lie there. Before anything points into them.
  void move_to(Device& device) {
    if (&device == &value.device()) return;
    value = value.clone_on(device);
    gradient = gradient.clone_on(device);
  }

  void gradient_is_ready() {
    if (on_gradient_ready) on_gradient_ready(*this);
  }
};

}  // namespace muster::trainers
