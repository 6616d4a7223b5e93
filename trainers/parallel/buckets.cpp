#include "trainers/parallel/buckets.hpp"

namespace muster::trainers {

std::vector<std::vector<std::size_t>> plan_buckets(std::span<const std::int64_t> sizes_bytes,
                                                   BucketLimits limits) {
  std::vector<std::vector<std::size_t>> buckets;
  std::int64_t limit_bytes = limits.first_bytes;
  std::int64_t filled_bytes = 0;
  bool open = false;
  for (std::size_t i = 0; i < sizes_bytes.size(); ++i) {
    if (!open) buckets.emplace_back();
    buckets.back().push_back(i);
    filled_bytes += sizes_bytes[i];
    open = filled_bytes < limit_bytes;
    if (!open) {
      filled_bytes = 0;
      limit_bytes = limits.other_bytes;
    }
  }
  return buckets;
}

}  // namespace muster::trainers
