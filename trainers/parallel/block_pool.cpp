#include "trainers/parallel/block_pool.hpp"

#include <algorithm>
#include <utility>

namespace muster::trainers {
namespace {

constexpr std::int64_t kFloatBytes = sizeof(float);

std::int64_t bytes_of(const Tensor& block) { return block.capacity() * kFloatBytes; }

}  // namespace

Tensor BlockPool::take(std::int64_t bytes) {
  const auto floats = (bytes + kFloatBytes - 1) / kFloatBytes;
  auto best = free_.end();
  for (auto block = free_.begin(); block != free_.end(); ++block) {
    const bool fits = block->capacity() >= floats;
    if (fits && (best == free_.end() || block->capacity() < best->capacity())) best = block;
  }
  if (best != free_.end()) {
    Tensor block = std::move(*best);
    free_.erase(best);
    block.resize({floats});
    return block;
  }
  // All that lies ready is too small: it goes, so that the blocks grow to the largest size instead of in number.
  for (const auto& block : free_) held_bytes_ -= bytes_of(block);
  free_.clear();
  Tensor block({floats}, device_);
  held_bytes_ += bytes_of(block);
  most_held_bytes_ = std::max(most_held_bytes_, held_bytes_);
  return block;
}

void BlockPool::give_back(Tensor& block) {
  if (block.capacity() > 0) free_.push_back(std::exchange(block, Tensor()));
}

void BlockPool::abandon(Tensor& block) {
  held_bytes_ -= bytes_of(block);
  keep_until_the_process_ends(block);
}

void keep_until_the_process_ends(Tensor& block) {
  static auto& kept = *new std::vector<Tensor>();  // never destroyed: that is the point
  kept.push_back(std::exchange(block, Tensor()));
}

}  // namespace muster::trainers
