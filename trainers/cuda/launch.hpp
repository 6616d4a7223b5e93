// How many threads compute `count` numbers: pure.
//
// Kernels loop with a stride of the whole grid, so a grid may be smaller than the count; a larger one gains nothing
// beyond what fills the machine.
#pragma once

#include <algorithm>
#include <cstdint>

namespace muster::trainers::cuda {

constexpr unsigned threads_per_block = 256;  ///< a power of two: sums over a block halve it again and again
constexpr std::int64_t max_blocks = 4096;

struct Launch {
  unsigned blocks = 1;
  unsigned threads = threads_per_block;
};

/// At least one block, also for no numbers at all: a grid of none is an error to CUDA.
constexpr Launch launch_for(std::int64_t count) {
  const std::int64_t wanted =
      count / threads_per_block + (count % threads_per_block == 0 ? 0 : 1);  // count + 255 could overflow
  return {.blocks = static_cast<unsigned>(std::clamp<std::int64_t>(wanted, 1, max_blocks)),
          .threads = threads_per_block};
}

/// Blocks whose partial sums one block adds up at the end: as many as that has threads. The same for every count above,
/// so that the order of a sum depends on the count alone.
constexpr Launch launch_for_sum(std::int64_t count) {
  auto launch = launch_for(count);
  launch.blocks = std::min(launch.blocks, threads_per_block);
  return launch;
}

}  // namespace muster::trainers::cuda
