#include "worker_sdk/src/operation.hpp"

#include <fmt/format.h>
#include <xxhash.h>

namespace muster::worker {

std::string text_of(const Buffer& buffer) {
  return fmt::format("{} x {}", buffer.count, name_of(buffer.type));
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

Operation collective(std::string_view name, std::uint64_t sequence, const std::string& details,
                     std::span<const std::size_t> counts) {
  Operation operation;
  operation.text = fmt::format("{} #{}", name, sequence);
  if (!details.empty()) operation.text += " (" + details + ")";
  const auto seed = XXH32(counts.data(), counts.size_bytes(), 0);
  operation.tag = XXH32(operation.text.data(), operation.text.size(), seed);
  return operation;
}

Operation message(std::uint64_t sequence, int source, int destination, const Buffer& buffer, bool sending) {
  const auto both = fmt::format("#{} {} {} {}", sequence, source, destination, text_of(buffer));
  return {.text = sending ? fmt::format("send #{} to rank {} ({})", sequence, destination, text_of(buffer))
                          : fmt::format("receive #{} from rank {} ({})", sequence, source, text_of(buffer)),
          .tag = XXH32(both.data(), both.size(), 1)};
}

}  // namespace muster::worker
