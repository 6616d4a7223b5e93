// The CPU's loops over numbers. No result depends on the machine: sums have a fixed order, and all else is correctly
// rounded operations (see tensor/vectorised.hpp).
#pragma once

#include "trainers/device/device.hpp"

namespace muster::trainers::cpu {

void add_to(float* sum, const float* values, std::int64_t count);
void clamp_negative(float* values, std::int64_t count);
void mask(float* gradient, const float* output, std::int64_t count);
void multiply(float* values, float factor, std::int64_t count);
double squares_of(const float* values, std::int64_t count);

void sgd(const SgdStep& step, const float* gradient, float* value, std::int64_t count);
void sgd_with_momentum(const SgdStep& step, const float* gradient, float* value, float* buffer,
                       std::int64_t count);
void adam(const AdamStep& step, const float* gradient, float* value, float* m, float* v, std::int64_t count);

void narrow(std::uint16_t* to, const float* from, std::int64_t count);
void widen(float* to, const std::uint16_t* from, std::int64_t count);

double cross_entropy(const float* logits, const std::uint8_t* labels, std::int64_t rows, std::int64_t classes,
                     float* gradient);

}  // namespace muster::trainers::cpu
