// Blocks of memory that are needed for a moment, again and again: for a unit's whole parameters, its gradients, what
// travels. A block that is given back is handed out again, so that a step asks the system for nothing, and no more is
// held than was in use at one time.
#pragma once

#include <vector>

#include "trainers/parallel/precision.hpp"
#include "trainers/tensor/tensor.hpp"

namespace muster::trainers {

class BlockPool {
 public:
  /// Of this device's memory.
  explicit BlockPool(Device& device) : device_(device) {}

  /// At least `bytes` of memory. What is in it is unspecified.
  Tensor take(std::int64_t bytes);
  /// Leaves the caller an empty tensor.
  void give_back(Tensor& block);
  /// Instead of give_back() where the backend may still use the block: see keep_until_the_process_ends().
  void abandon(Tensor& block);

  std::int64_t held_bytes() const { return held_bytes_; }            ///< in use or ready to be
  std::int64_t most_held_bytes() const { return most_held_bytes_; }  ///< ever

 private:
  Device& device_;
  std::vector<Tensor> free_;
  std::int64_t held_bytes_ = 0;
  std::int64_t most_held_bytes_ = 0;
};

/// What all units of a model use in turn. One pool for each of the sizes: a part that took a whole unit's block would have
/// another one made for the unit.
struct UnitPools {
  explicit UnitPools(Device& device) : wholes(device), parts(device), scratch({kNumbersAtOnce}, device) {}
  std::int64_t most_held_bytes() const { return wholes.most_held_bytes() + parts.most_held_bytes(); }

  BlockPool wholes;  ///< all parts of a unit
  BlockPool parts;   ///< one rank's
  Tensor scratch;    ///< for narrow_in_place() and widen_in_place()
};

/// Never freed: work that uses the block may still be under way when an exception comes between, and waiting for it could
/// take as long as a collective's timeout.
void keep_until_the_process_ends(Tensor& block);

}  // namespace muster::trainers
