// What a checkpoint written in the background is written from.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "muster/worker/checkpoint.hpp"

namespace muster::worker {

/// Rows of tensors in memory of its own, kept from save to save: fresh memory costs more than the copying.
class Snapshot {
 public:
  /// The tensors in their new place.
  std::vector<TensorRef> take(std::vector<TensorRef> tensors) {
    std::size_t bytes = 0;
    for (const auto& tensor : tensors) bytes += tensor.bytes();
    if (bytes > size_bytes_) {
      memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
      size_bytes_ = bytes;
    }
    std::size_t next = 0;
    for (auto& tensor : tensors) {
      const auto count = tensor.bytes();
      if (count > 0) std::memcpy(memory_.get() + next, tensor.data, count);
      tensor.data = memory_.get() + next;
      next += count;
    }
    return tensors;
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::size_t size_bytes_ = 0;
};

}  // namespace muster::worker
