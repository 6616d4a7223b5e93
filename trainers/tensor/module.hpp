// A layer, or a chain of them: computes forward, then backward.
//
// The tensors that `forward` and `backward` return belong to the module and stay valid until its next call of
// the same kind, so a step allocates nothing. The input of `forward` must stay alive and unchanged until
// `backward` is done: modules keep a pointer to it and no copy. A module may also work in the tensor that it
// is given where that is said.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainers/tensor/parameter.hpp"

namespace muster::trainers {

enum class InputGradient : std::uint8_t {
  wanted,
  unwanted  ///< the input is data: `backward` need not compute, and may return anything
};

class Module {
 public:
  Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  virtual ~Module() = default;

  /// `input` (batch, features in) -> (batch, features out).
  virtual Tensor& forward(Tensor& input) = 0;
  /// `output_gradient` has the shape of the last output. Fills the parameters' gradients, says of each that
  /// it is ready, and returns the gradient with respect to the last input.
  virtual Tensor& backward(Tensor& output_gradient, InputGradient input_gradient) = 0;
  /// In order of use; empty for a layer without any.
  virtual std::vector<Parameter*> parameters() { return {}; }
};

}  // namespace muster::trainers
