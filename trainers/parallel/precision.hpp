// Numbers that travel: float32, or bfloat16 at half the bytes, rounded to nearest even.
//
// bfloat16 is the upper half of a float32: the same range, 8 bits of precision. What is computed stays float32; a
// parameter that has travelled as bfloat16 is computed with as such.
#pragma once

#include <cstdint>

#include "trainers/device/device.hpp"
#include "trainers/tensor/tensor.hpp"

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

/// `count` numbers of the block from float32 to `type`, to the beginning of the same memory: no other is taken. `scratch`
/// has room for kNumbersAtOnce.
void narrow_in_place(Device& device, worker::ElementType type, void* block, std::int64_t count,
                     Tensor& scratch);
/// The other way round: the narrow numbers lie at the end of the memory that `count` in float32 take.
void widen_in_place(Device& device, worker::ElementType type, void* block, std::int64_t count,
                    Tensor& scratch);
constexpr std::int64_t kNumbersAtOnce = 256;

/// Where widen_in_place() expects them.
void* narrow_end(worker::ElementType type, void* block, std::int64_t count);

}  // namespace muster::trainers
