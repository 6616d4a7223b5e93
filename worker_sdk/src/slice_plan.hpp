// Who saves which rows, and whether the ranks agree about it. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "muster/worker/sharded_checkpoint.hpp"
#include "worker_sdk/src/checkpoint_index.hpp"

namespace muster::worker {

/// Slices without their memory, as text for the other ranks.
std::string encode_slices(const std::vector<TensorSlice>& slices);
std::vector<TensorSlice> decode_slices(const std::string& text);

struct SlicePlan {
  std::vector<std::optional<std::size_t>> part_of_rank;  ///< nothing for a rank that saves no row
  std::size_t parts = 0;
  std::vector<IndexedTensor> tensors;  ///< in the order in which they are first named, rank by rank
};

/// `by_rank[r]` is what rank r holds. Throws std::invalid_argument that names the tensor and the ranks.
SlicePlan plan_slices(const std::vector<std::vector<TensorSlice>>& by_rank);

}  // namespace muster::worker
