#include "trainers/parallel/clipping.hpp"

#include "trainers/tensor/vectorised.hpp"

namespace muster::trainers {
namespace {

constexpr std::int64_t kLanes = 8;

/// In eight sums side by side, which vector instructions can hold.
MUSTER_VECTORISED
double squares_of(const float* values, std::int64_t count) {
  double sums[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const double value = values[i + lane];
      sums[lane] += value * value;
    }
  }
  for (; i < count; ++i) sums[0] += static_cast<double>(values[i]) * values[i];
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

MUSTER_VECTORISED
void multiply(float* values, float factor, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) values[i] *= factor;
}

}  // namespace

double sum_of_squares(std::span<Parameter* const> parameters) {
  double total = 0;
  for (const auto* parameter : parameters)
    total += squares_of(parameter->gradient.data(), parameter->gradient.count());
  return total;
}

void shorten_gradients(std::span<Parameter* const> parameters, double norm, double max_norm) {
  constexpr double kNeverDividesByZero = 1e-6;
  const double factor = max_norm / (norm + kNeverDividesByZero);
  if (factor >= 1) return;
  for (auto* parameter : parameters) {
    multiply(parameter->gradient.data(), static_cast<float>(factor), parameter->gradient.count());
  }
}

}  // namespace muster::trainers
