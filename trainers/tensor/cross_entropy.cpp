#include "trainers/tensor/cross_entropy.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace muster::trainers {

double softmax_cross_entropy(const Tensor& logits, std::span<const std::uint8_t> labels,
                             Tensor& logits_gradient) {
  const auto classes = logits.columns();
  assert(static_cast<std::size_t>(logits.rows()) == labels.size());
  logits_gradient.resize(logits.shape());
  if (logits.rows() == 0) return 0;
  const float scale = 1.0F / static_cast<float>(logits.rows());
  double total = 0;
  for (std::int64_t r = 0; r < logits.rows(); ++r) {
    const float* in = logits.row(r);
    float* out = logits_gradient.row(r);
    const auto label = labels[static_cast<std::size_t>(r)];
    assert(label < classes);
    const float greatest = *std::max_element(in, in + classes);
    float sum = 0;
    for (std::int64_t c = 0; c < classes; ++c) {
      out[c] = std::exp(in[c] - greatest);
      sum += out[c];
    }
    total += std::log(static_cast<double>(sum)) - static_cast<double>(in[label] - greatest);
    const float share = scale / sum;
    for (std::int64_t c = 0; c < classes; ++c) out[c] *= share;
    out[label] -= scale;
  }
  return total / static_cast<double>(logits.rows());
}

std::int64_t count_correct(const Tensor& logits, std::span<const std::uint8_t> labels) {
  std::int64_t correct = 0;
  for (std::int64_t r = 0; r < logits.rows(); ++r) {
    const float* in = logits.row(r);
    const auto guess = std::max_element(in, in + logits.columns()) - in;
    if (guess == labels[static_cast<std::size_t>(r)]) ++correct;
  }
  return correct;
}

}  // namespace muster::trainers
