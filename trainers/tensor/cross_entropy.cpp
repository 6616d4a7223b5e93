#include "trainers/tensor/cross_entropy.hpp"

#include <cassert>

namespace muster::trainers {

double softmax_cross_entropy(const Tensor& logits, std::span<const std::uint8_t> labels,
                             Tensor& logits_gradient) {
  assert(static_cast<std::size_t>(logits.rows()) == labels.size());
  logits_gradient.resize(logits.shape(), logits.device());
  if (logits.rows() == 0) return 0;
  return logits.device().cross_entropy(logits.data(), labels.data(), logits.rows(), logits.columns(),
                                       logits_gradient.data());
}

std::int64_t count_correct(const Tensor& logits, std::span<const std::uint8_t> labels) {
  if (logits.rows() == 0) return 0;
  return logits.device().count_correct(logits.data(), labels.data(), logits.rows(), logits.columns());
}

}  // namespace muster::trainers
