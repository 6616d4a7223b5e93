#include "trainers/data/fingerprint.hpp"

#include <algorithm>
#include <cstring>

namespace muster::trainers {
namespace {

/// Odd, so that multiplying loses nothing; its bits have no pattern (the golden ratio's, as Knuth proposes for hashing).
constexpr std::uint64_t kMultiplier = 0x9e3779b97f4a7c15;
constexpr int kHalf = 32;

/// The multiplication carries every bit upwards, the shift brings the upper ones back down.
std::uint64_t mix(std::uint64_t sum, std::uint64_t word) {
  sum = (sum ^ word) * kMultiplier;
  return sum ^ (sum >> kHalf);
}

}  // namespace

std::uint64_t fingerprint_of(std::span<const std::byte> bytes, std::uint64_t before) {
  auto sum = mix(before, bytes.size() + 1);
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), sizeof(std::uint64_t)))) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), std::min(bytes.size(), sizeof(word)));
    sum = mix(sum, word);
  }
  return sum;
}

}  // namespace muster::trainers
