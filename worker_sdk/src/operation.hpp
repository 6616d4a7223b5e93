// One operation of a group, as it is named in errors, and the number that its messages carry.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "muster/worker/process_group.hpp"

namespace muster::worker {

/// The tag is a hash of all that must be the same on both ends: kind, place in the sequence, type, counts. So
/// operations that do not belong together never exchange a byte: they time out and can be told apart, where
/// otherwise they would mix up data or overrun a buffer.
struct Operation {
  std::string text;  ///< "all_reduce #42 (sum, 1000 x F32)"
  std::uint32_t tag = 0;
};

std::string text_of(const Buffer& buffer);  ///< "1000 x F32", "1000 x F32, gradients of 0.weight"
std::string_view text_of(ReduceOp op);

std::string reduce_text(const Buffer& buffer, ReduceOp op);  ///< "sum, 1000 x F32"
std::string broadcast_text(int root, const Buffer& buffer);  ///< "from rank 0, 1000 x F32"
/// "3 x F32, counts [1, 2]"; of many ranks the first ones' counts.
std::string uneven_text(const Buffer& output, std::span<const std::size_t> counts);

/// `details` as above; may be empty. `counts` where ranks bring different ones. `group` is empty for the world.
Operation collective(std::string_view name, std::uint64_t sequence, const std::string& details,
                     std::span<const std::size_t> counts = {}, std::string_view group = {});

enum class Direction : std::uint8_t { send, receive };

/// The n-th message from `source` to `destination`: the same tag on both ends.
Operation message(std::uint64_t sequence, int source, int destination, const Buffer& buffer,
                  Direction direction);

}  // namespace muster::worker
