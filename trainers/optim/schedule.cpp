#include "trainers/optim/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace muster::trainers {
namespace {

double scale_of(const ScheduleOptions& options, std::int64_t global_batch) {
  if (options.reference_batch == 0) return 1;
  const double ratio = static_cast<double>(global_batch) / static_cast<double>(options.reference_batch);
  switch (options.scaling) {
    case RateScaling::none:
      return 1;
    case RateScaling::linear:
      return ratio;
    case RateScaling::square_root:
      return std::sqrt(ratio);
  }
  return 1;
}

}  // namespace

double learning_rate_of(const ScheduleOptions& options, const RunProgress& progress) {
  const double target = options.rate * scale_of(options, progress.global_batch);
  const auto done = static_cast<double>(progress.samples_done);
  const auto batch = static_cast<double>(progress.global_batch);
  const double warmup = static_cast<double>(options.warmup_steps) * batch;
  if (done < warmup) return target * std::min((done + batch) / warmup, 1.0);
  if (options.decay == RateDecay::constant) return target;
  const double rest = static_cast<double>(progress.samples_total) - warmup;
  const double part = rest > 0 ? std::clamp((done - warmup) / rest, 0.0, 1.0) : 1.0;
  return target * (1 + std::cos(std::numbers::pi * part)) / 2;
}

}  // namespace muster::trainers
