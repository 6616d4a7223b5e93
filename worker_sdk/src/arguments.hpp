// What a call of a process group must fulfil, whatever the backend. Each throws std::invalid_argument.
#pragma once

#include <span>

#include "muster/worker/process_group.hpp"

namespace muster::worker {

/// Which memory a group can use.
enum class Takes : std::uint8_t { host, host_and_device };

/// That there is memory, and of a kind that the group takes.
void check_memory(const Buffer& buffer, Takes takes);
void check_memory(const Buffer& input, const Buffer& output, Takes takes);
void check_rank(const char* what, int rank, int size);
void check_reduce(const Buffer& buffer, ReduceOp op);
/// `whole` has `size` times the elements of `part`.
void check_parts(const char* name, const Buffer& whole, const Buffer& part, int size);
void check_uneven(const Buffer& input, const Buffer& output, std::span<const std::size_t> counts, int rank,
                  int size);

}  // namespace muster::worker
