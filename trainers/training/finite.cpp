#include "trainers/training/finite.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace muster::trainers {
namespace {

bool is_finite(float value) { return std::isfinite(value); }

/// Empty if all are finite.
std::string place_in(const std::string& name, const Tensor& anywhere) {
  const auto tensor = anywhere.clone_on(cpu_device());
  const auto values = tensor.values();
  const auto found = std::find_if_not(values.begin(), values.end(), is_finite);
  if (found == values.end()) return {};
  auto index = found - values.begin();
  std::vector<std::int64_t> place(tensor.shape().size());
  for (std::size_t d = place.size(); d-- > 0;) {
    place[d] = index % tensor.shape()[d];
    index /= tensor.shape()[d];
  }
  return fmt::format("tensor {} has {} at [{}]", name, text_of_number(*found), fmt::join(place, ", "));
}

}  // namespace

std::string text_of_number(double value) { return std::isnan(value) ? "nan" : fmt::format("{}", value); }

bool all_finite(const Tensor& tensor) { return tensor.device().all_finite(tensor.data(), tensor.count()); }

std::string first_not_finite(const Tensor& batch, const std::vector<Parameter*>& parameters,
                             const Tensor& outputs) {
  if (auto place = place_in("of the batch", batch); !place.empty()) return place;
  for (const auto* parameter : parameters)
    if (auto place = place_in(parameter->name, parameter->value); !place.empty()) return place;
  if (auto place = place_in("of the outputs", outputs); !place.empty()) return place;
  return "no tensor of this rank shows it";
}

}  // namespace muster::trainers
