// The simulator's only source of chance: the same seed gives the same numbers on every machine.
#pragma once

#include <cstdint>

#include "base/time.hpp"

namespace muster::sim {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  /// Splitmix64 (Steele, Lea and Flood, 2014).
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  /// low to high, both inclusive.
  int between(int low, int high) {
    return low + static_cast<int>(next() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return between(1, 100) <= percent; }
  Duration ms(int low, int high) { return std::chrono::milliseconds(between(low, high)); }

 private:
  std::uint64_t state_;
};

}  // namespace muster::sim
