#include "trainers/parallel/clipping.hpp"

namespace muster::trainers {
double sum_of_squares(std::span<Parameter* const> parameters) {
  double total = 0;
  for (const auto* parameter : parameters) {
    const auto& gradient = parameter->gradient;
    total += gradient.device().sum_of_squares(gradient.data(), gradient.count());
  }
  return total;
}

void shorten_gradients(std::span<Parameter* const> parameters, double norm, double max_norm) {
  constexpr double kNeverDividesByZero = 1e-6;
  const double factor = max_norm / (norm + kNeverDividesByZero);
  if (factor >= 1) return;
  for (auto* parameter : parameters) {
    auto& gradient = parameter->gradient;
    gradient.device().scale(gradient.data(), static_cast<float>(factor), gradient.count());
  }
}

}  // namespace muster::trainers
