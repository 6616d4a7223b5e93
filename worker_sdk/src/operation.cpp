#include "worker_sdk/src/operation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>

namespace muster::worker {

std::string text_of(const Buffer& buffer) {
  return fmt::format("{} x {}{}{}", buffer.count, name_of(buffer.type), buffer.what.empty() ? "" : ", ",
                     buffer.what);
}

std::string_view text_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return "sum";
    case ReduceOp::average:
      return "average";
    case ReduceOp::min:
      return "min";
    case ReduceOp::max:
      return "max";
  }
  return "?";
}

std::string reduce_text(const Buffer& buffer, ReduceOp op) {
  return fmt::format("{}, {}", text_of(op), text_of(buffer));
}

std::string broadcast_text(int root, const Buffer& buffer) {
  return fmt::format("from rank {}, {}", root, text_of(buffer));
}

std::string uneven_text(const Buffer& output, std::span<const std::size_t> counts) {
  constexpr std::size_t max_shown = 16;
  const auto shown = counts.first(std::min(counts.size(), max_shown));
  return fmt::format("{} x {}, counts [{}{}]{}{}", output.count, name_of(output.type), fmt::join(shown, ", "),
                     shown.size() < counts.size() ? ", ..." : "", output.what.empty() ? "" : ", ",
                     output.what);
}

Operation collective(std::string_view name, std::uint64_t sequence, const std::string& details,
                     std::span<const std::size_t> counts, std::string_view group) {
  Operation operation;
  operation.text = fmt::format("{} #{}", name, sequence);
  if (!details.empty()) operation.text += " (" + details + ")";
  if (!group.empty()) operation.text += fmt::format(" in group {}", group);
  const auto seed = XXH32(counts.data(), counts.size_bytes(), 0);
  operation.tag = XXH32(operation.text.data(), operation.text.size(), seed);
  return operation;
}

Operation message(std::uint64_t sequence, int source, int destination, const Buffer& buffer,
                  Direction direction) {
  const auto both =
      fmt::format("#{} {} {} {} x {}", sequence, source, destination, buffer.count, name_of(buffer.type));
  const bool sending = direction == Direction::send;
  return {.text = sending ? fmt::format("send #{} to rank {} ({})", sequence, destination, text_of(buffer))
                          : fmt::format("receive #{} from rank {} ({})", sequence, source, text_of(buffer)),
          .tag = XXH32(both.data(), both.size(), 1)};
}

}  // namespace muster::worker
