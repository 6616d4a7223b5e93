#include "trainers/tensor/random.hpp"

namespace muster::trainers {
namespace {

constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15;  // 2^64 divided by the golden ratio, odd

std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

}  // namespace

Random::Random(std::uint64_t seed, std::uint64_t stream) : counter_(mix(mix(seed) + kStep * (stream + 1))) {}

Random Random::of_rank(std::uint64_t seed, int rank) {
  constexpr std::uint64_t kFirstRankStream = std::uint64_t{1} << 48;  // far from those of layers and epochs
  return {seed, kFirstRankStream + static_cast<std::uint64_t>(rank)};
}

std::uint64_t Random::next() {
  counter_ += kStep;
  return mix(counter_);
}

std::uint64_t Random::below(std::uint64_t bound) {
  // Draws from the incomplete last interval of length `bound` are thrown away.
  const std::uint64_t excess = (0 - bound) % bound;  // 2^64 mod bound
  for (;;) {
    const auto drawn = next();
    if (drawn >= excess) return drawn % bound;
  }
}

float Random::uniform(float low, float high) {
  const auto fraction = static_cast<float>(next() >> 40) * 0x1p-24F;
  return low + (high - low) * fraction;
}

}  // namespace muster::trainers
