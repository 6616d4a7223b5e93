// Numbers that travel: float32, or bfloat16 at half the bytes, rounded to nearest even.
//
// bfloat16 is the upper half of a float32: the same range, 8 bits of precision. What is computed stays float32; a
// parameter that has travelled as bfloat16 is computed with as such.
#pragma once

#include <cstdint>

#include "trainers/device/device.hpp"

namespace muster::trainers {

/// Chosen separately. The master copy of the parameters and the optimizer's state are float32 always.
struct MixedPrecision {
  worker::ElementType parameters = worker::ElementType::f32;  ///< that a layer computes with: f32 or bf16
  worker::ElementType reduction = worker::ElementType::f32;   ///< of gradients over ranks: f32 or bf16
};

/// `count` numbers from float32 to `type` at `to` + `offset` (in numbers), all in the device's memory.
void store_numbers(Device& device, worker::ElementType type, void* to, std::int64_t offset, const float* from,
                   std::int64_t count);
void store_zeros(Device& device, worker::ElementType type, void* to, std::int64_t offset, std::int64_t count);
/// The other way round.
void load_numbers(Device& device, worker::ElementType type, const void* from, std::int64_t offset, float* to,
                  std::int64_t count);

}  // namespace muster::trainers
