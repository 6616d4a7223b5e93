// Blocks of memory that are needed for a moment, again and again: for a unit's whole parameters, its gradients, what
// travels. A block that is given back is handed out again, so that a step asks the system for nothing, and no more is
// held than was in use at one time.
#pragma once

#include <memory>
#include <vector>

#include "muster/worker/process_group.hpp"
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
  /// If the work that uses the block may still be under way (an exception came between), its memory is kept until the
  /// process ends: the backend may still write there, and waiting could take as long as a collective's timeout.
  void give_back(Tensor& block, const std::shared_ptr<worker::Work>& user);

  std::int64_t held_bytes() const { return held_bytes_; }            ///< in use or ready to be
  std::int64_t most_held_bytes() const { return most_held_bytes_; }  ///< ever

 private:
  Device& device_;
  std::vector<Tensor> free_;
  std::int64_t held_bytes_ = 0;
  std::int64_t most_held_bytes_ = 0;
};

/// One pool for each of the sizes that a sharded unit needs: a part that took a whole unit's block would have another one
/// made for the unit.
struct UnitPools {
  explicit UnitPools(Device& device) : wholes(device), parts(device) {}
  std::int64_t most_held_bytes() const { return wholes.most_held_bytes() + parts.most_held_bytes(); }

  BlockPool wholes;  ///< all parts of a unit
  BlockPool parts;   ///< one rank's
};

/// Never freed.
void keep_until_the_process_ends(Tensor& block);

}  // namespace muster::trainers
