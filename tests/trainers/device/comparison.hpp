// Every operation of a device beside the CPU's, on shapes that are no multiples of anything.
//
// A list of what differs, not assertions: so the same comparison serves a GPU, a second implementation for the CPU, and
// broken ones, which prove that it can fail.
#pragma once

#include <string>
#include <vector>

#include "trainers/device/device.hpp"

namespace muster::trainers::test {

struct Difference {
  std::string operation;  ///< "adam"
  std::string where;      ///< "1000 numbers: value[17] is 0.5, expected 0.25"
};

/// The operations that are compared, in this order.
const std::vector<std::string>& compared_operations();

enum class Sizes {
  all,
  small  ///< without those that need more threads than a GPU's grid has here
};

/// Empty if `candidate` computes as the CPU does: exactly where an operation is correctly rounded, to within what its
/// sums allow elsewhere.
std::vector<Difference> compare_operations(Device& candidate, Sizes sizes = Sizes::all);

/// A model's forward and backward pass and some steps of each optimizer: losses, outputs, gradients, parameters.
std::vector<Difference> compare_training(Device& candidate);

std::string text_of(const std::vector<Difference>& differences);

}  // namespace muster::trainers::test
