// Random numbers that are the same on every platform: SplitMix64 (Steele, Lea, Flood: "Fast splittable
// pseudorandom number generators", OOPSLA 2014). The standard library's distributions are not used, because
// their results differ between implementations.
//
// The state is a counter that grows by a constant; an output is a mix of it. A (seed, stream) pair is mixed
// into the first counter, so that the parameters' initial values and the epochs' permutations each have a
// stream of their own and none depends on how much another one drew.
#pragma once

#include <cstdint>

namespace muster::trainers {

class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t stream);
  /// A stream of this rank's own, for what must differ between the ranks (augmentation, dropout); apart from all that
  /// must not, as the initial parameters.
  static Random of_rank(std::uint64_t seed, int rank);

  std::uint64_t next();
  /// Uniform in [0, bound), without bias. `bound` is at least 1.
  std::uint64_t below(std::uint64_t bound);
  /// Uniform in [low, high): 2^24 equally spaced values.
  float uniform(float low, float high);

 private:
  std::uint64_t counter_;
};

}  // namespace muster::trainers
