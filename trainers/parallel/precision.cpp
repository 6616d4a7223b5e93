#include "trainers/parallel/precision.hpp"

#include <algorithm>
#include <bit>

#include "trainers/tensor/vectorised.hpp"

namespace muster::trainers {
namespace {

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

}  // namespace

void store_numbers(worker::ElementType type, void* to, std::int64_t offset, const float* from,
                   std::int64_t count) {
  if (type == worker::ElementType::bf16) {
    narrow(static_cast<std::uint16_t*>(to) + offset, from, count);
  } else {
    std::copy_n(from, count, static_cast<float*>(to) + offset);
  }
}

void store_zeros(worker::ElementType type, void* to, std::int64_t offset, std::int64_t count) {
  if (type == worker::ElementType::bf16) {
    std::fill_n(static_cast<std::uint16_t*>(to) + offset, count, std::uint16_t{0});
  } else {
    std::fill_n(static_cast<float*>(to) + offset, count, 0.0F);
  }
}

void load_numbers(worker::ElementType type, const void* from, std::int64_t offset, float* to,
                  std::int64_t count) {
  if (type == worker::ElementType::bf16) {
    widen(to, static_cast<const std::uint16_t*>(from) + offset, count);
  } else {
    std::copy_n(static_cast<const float*>(from) + offset, count, to);
  }
}

}  // namespace muster::trainers
