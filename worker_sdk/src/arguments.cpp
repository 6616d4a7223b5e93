#include "worker_sdk/src/arguments.hpp"

#include <fmt/format.h>

#include <limits>
#include <stdexcept>

#include "worker_sdk/src/operation.hpp"
#include "worker_sdk/src/reduction.hpp"

namespace muster::worker {
namespace {

constexpr std::size_t most_bytes = std::numeric_limits<std::ptrdiff_t>::max();

[[noreturn]] void refuse(const std::string& why) { throw std::invalid_argument(why); }

void check_same_type(const char* name, const Buffer& a, const Buffer& b) {
  if (a.type != b.type) refuse(fmt::format("{}: {} and {} differ in type", name, text_of(a), text_of(b)));
}

}  // namespace

void check_memory(const Buffer& buffer, Takes takes) {
  if (size_of(buffer.type) == 0)
    refuse(fmt::format("{}: there is no element type {}", text_of(buffer), static_cast<int>(buffer.type)));
  if (buffer.count == 0) return;
  if (buffer.count > most_bytes / size_of(buffer.type))
    refuse(fmt::format("{}: more bytes than memory can have", text_of(buffer)));
  if (!buffer.data) refuse(fmt::format("{} at a null pointer", text_of(buffer)));
  if (buffer.place == Place::device && takes == Takes::host)
    refuse(fmt::format(
        "{} on a device: this group takes the host's memory alone; give WorkerOptions an accelerator",
        text_of(buffer)));
}

void check_memory(const Buffer& input, const Buffer& output, Takes takes) {
  check_memory(input, takes);
  check_memory(output, takes);
}

void check_rank(const char* what, int rank, int size) {
  if (rank < 0 || rank >= size)
    refuse(fmt::format("{} {}: a rank from 0 to {} is expected", what, rank, size - 1));
}

void check_reduce(const Buffer& buffer, ReduceOp op) {
  if (op > ReduceOp::max)
    refuse(fmt::format("{}: there is no reduction {}", text_of(buffer), static_cast<int>(op)));
  if (op == ReduceOp::average && !is_floating(buffer.type))
    refuse(fmt::format("{}: an average needs a floating type", text_of(buffer)));
}

void check_parts(const char* name, const Buffer& whole, const Buffer& part, int size) {
  check_same_type(name, whole, part);
  const auto parts = static_cast<std::size_t>(size);
  if (whole.count / parts != part.count || whole.count % parts != 0)
    refuse(fmt::format("{}: {} elements are not {} times {}", name, whole.count, size, part.count));
}

void check_uneven(const Buffer& input, const Buffer& output, std::span<const std::size_t> counts, int rank,
                  int size) {
  const char* name = "all_gather_uneven";
  check_same_type(name, input, output);
  if (counts.size() != static_cast<std::size_t>(size))
    refuse(fmt::format("{}: {} counts for {} ranks", name, counts.size(), size));
  if (counts[static_cast<std::size_t>(rank)] != input.count)
    refuse(fmt::format("{}: the input has {} elements, counts[{}] is {}", name, input.count, rank,
                       counts[static_cast<std::size_t>(rank)]));
  std::size_t total = 0;
  bool counted = true;
  for (const auto count : counts) counted = counted && !__builtin_add_overflow(total, count, &total);
  if (!counted || total != output.count)
    refuse(fmt::format("{}: the output has {} elements, the counts add up to {}", name, output.count,
                       counted ? std::to_string(total) : "more than can be counted"));
}

}  // namespace muster::worker
