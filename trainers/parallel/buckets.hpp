// Which parameters' gradients travel together. Pure.
//
// Many small all-reduces waste time on latency; one large one at the end cannot overlap with the backward
// pass. So gradients are put into buckets in the order in which they become ready. The first bucket is small,
// so that the network has something to do soon. (Li et al., "PyTorch Distributed: experiences on accelerating
// data parallel training", VLDB 2020, section 4.2.)
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace muster::trainers {

struct BucketLimits {
  std::int64_t first_bytes = std::int64_t{1} << 20;
  std::int64_t other_bytes = std::int64_t{25} << 20;
};

/// `sizes_bytes[i]` is the size of the gradient that becomes ready as the i-th. Returns the buckets, each a
/// list of such i, in order. A bucket is closed by the gradient that brings it to its limit or over it; none
/// is empty.
std::vector<std::vector<std::size_t>> plan_buckets(std::span<const std::int64_t> sizes_bytes,
                                                   BucketLimits limits);

}  // namespace muster::trainers
