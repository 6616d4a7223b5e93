// The learning rate of each step. Pure.
//
//   target = rate x scale(global batch / reference batch)
//   rate   = target x (k + 1) / warm-up steps                 in the warm-up, k counting from 0
//          = target                                           after it, or
//          = target x (1 + cos(pi x part of the rest done)) / 2
//
// A larger batch is a better mean over the same data, so a longer step is justified: linear scaling (Goyal et al.,
// "Accurate, large minibatch SGD: training ImageNet in 1 hour", 2017) or, more cautious, by the square root
// (Krizhevsky, "One weird trick for parallelizing convolutional neural networks", 2014). Cosine decay: Loshchilov and
// Hutter, "SGDR: stochastic gradient descent with warm restarts", 2017, without the restarts.
//
// Progress is counted in samples, not in steps: so the rate is a function of where the run stands, and a world of
// another size goes on where the last one was.
#pragma once

#include <cstdint>

namespace muster::trainers {

enum class RateScaling : std::uint8_t { none, linear, square_root };
enum class RateDecay : std::uint8_t { constant, cosine };

struct ScheduleOptions {
  double rate = 1e-3;
  RateScaling scaling = RateScaling::none;
  std::int64_t reference_batch = 0;  ///< the global batch that `rate` is meant for; 0: whichever there is
  std::int64_t warmup_steps = 0;
  RateDecay decay = RateDecay::constant;
};

/// Where a run stands before a step.
struct RunProgress {
  std::int64_t samples_done = 0;
  std::int64_t samples_total = 0;  ///< of the whole run
  std::int64_t global_batch = 1;   ///< samples a step, of all ranks
};

double learning_rate_of(const ScheduleOptions& options, const RunProgress& progress);

}  // namespace muster::trainers
