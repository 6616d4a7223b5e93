// What the optimizers have in common: they change the parameters' values by their gradients, one step at a
// time, and have a state that belongs in a checkpoint.
//
// Each is a loop over elements; on the CPU it uses nothing but correctly rounded operations (+, -, x, /, square root),
// so the same gradients give the same bits on every rank and on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainers/tensor/parameter.hpp"

namespace muster::trainers {

/// A part of an optimizer's state: "exp_avg.0.weight". Names are PyTorch's.
struct NamedTensor {
  std::string name;
  Tensor* tensor = nullptr;
  const Parameter* of = nullptr;  ///< whose shape it has
};

class Optimizer {
 public:
  Optimizer(std::vector<Parameter*> parameters, double rate)
      : learning_rate(rate), parameters_(std::move(parameters)) {}
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  virtual ~Optimizer() = default;

  /// Uses the parameters' gradients; leaves them as they are.
  void step() {
    ++steps_taken;
    update();
  }
  virtual std::vector<NamedTensor> state() = 0;
  const std::vector<Parameter*>& parameters() const { return parameters_; }

  double learning_rate;          ///< may be changed between steps
  std::int64_t steps_taken = 0;  ///< belongs in a checkpoint, beside `state`

 protected:
  virtual void update() = 0;
  /// Zeros, one tensor for each parameter, where it lies.
  std::vector<Tensor> tensors_like_parameters() const {
    std::vector<Tensor> tensors;
    for (const auto* parameter : parameters_)
      tensors.emplace_back(parameter->value.shape(), parameter->value.device());
    return tensors;
  }
  void append_state(const std::string& kind, std::vector<Tensor>& tensors, std::vector<NamedTensor>& out) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      out.push_back({kind + "." + parameters_[i]->name, &tensors[i], parameters_[i]});
    }
  }

  std::vector<Parameter*> parameters_;
};

}  // namespace muster::trainers
