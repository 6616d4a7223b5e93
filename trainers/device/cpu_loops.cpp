#include "trainers/device/cpu_loops.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

#include "trainers/tensor/vectorised.hpp"

namespace muster::trainers::cpu {
namespace {

constexpr std::int64_t kLanes = 8;

}  // namespace

MUSTER_VECTORISED
void add_to(float* __restrict sum, const float* __restrict values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) sum[i] += values[i];
}

MUSTER_VECTORISED
void clamp_negative(float* values, std::int64_t count) {
  // Written so that a NaN stays one.
  for (std::int64_t i = 0; i < count; ++i) values[i] = values[i] < 0.0F ? 0.0F : values[i];
}

MUSTER_VECTORISED
void mask(float* __restrict gradient, const float* __restrict output, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) gradient[i] = output[i] > 0.0F ? gradient[i] : 0.0F;
}

MUSTER_VECTORISED
void multiply(float* values, float factor, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) values[i] *= factor;
}

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
void sgd(const SgdStep& c, const float* __restrict gradient, float* __restrict value, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) value[i] -= c.rate * (gradient[i] + c.decay * value[i]);
}

MUSTER_VECTORISED
void sgd_with_momentum(const SgdStep& c, const float* __restrict gradient, float* __restrict value,
                       float* __restrict buffer, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    buffer[i] = c.momentum * buffer[i] + (gradient[i] + c.decay * value[i]);
    value[i] -= c.rate * buffer[i];
  }
}

MUSTER_VECTORISED
void adam(const AdamStep& c, const float* __restrict gradient, float* __restrict value, float* __restrict m,
          float* __restrict v, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float p = value[i] * c.shrink;
    const float g = gradient[i] + c.gradient_decay * p;
    m[i] = m[i] * c.beta1 + g * c.one_minus_beta1;
    v[i] = v[i] * c.beta2 + g * g * c.one_minus_beta2;
    value[i] = p - c.step_size * m[i] / (std::sqrt(v[i]) * c.inverse_root_of_bias + c.epsilon);
  }
}

MUSTER_VECTORISED
void narrow(std::uint16_t* __restrict to, const float* __restrict from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(from[i]);
    const std::uint32_t to_even = 0x7fff + ((bits >> 16) & 1);
    const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
    to[i] = static_cast<std::uint16_t>(is_nan ? (bits >> 16) | 0x40 : (bits + to_even) >> 16);
  }
}

MUSTER_VECTORISED
void widen(float* __restrict to, const std::uint16_t* __restrict from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = std::bit_cast<float>(std::uint32_t{from[i]} << 16);
}

double cross_entropy(const float* logits, const std::uint8_t* labels, std::int64_t rows, std::int64_t classes,
                     float* gradient) {
  const float scale = 1.0F / static_cast<float>(rows);
  double total = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* in = logits + r * classes;
    float* out = gradient + r * classes;
    const auto label = labels[r];
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
  return total / static_cast<double>(rows);
}

}  // namespace muster::trainers::cpu
