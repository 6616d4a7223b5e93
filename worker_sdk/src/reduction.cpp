#include "worker_sdk/src/reduction.hpp"

#include <gloo/types.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace muster::worker {
namespace {

/// The upper half of an f32.
struct BFloat16 {
  std::uint16_t bits;
};

float widen(BFloat16 value) { return std::bit_cast<float>(std::uint32_t{value.bits} << 16); }
float widen(gloo::float16 value) { return gloo::cpu_half2float(value); }
template <class T>
T widen(T value) {
  return value;
}

template <class T>
T narrow(auto value) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if (std::isnan(value)) return {static_cast<std::uint16_t>((bits >> 16) | 0x40)};
    const std::uint32_t round_to_even = 0x7fff + ((bits >> 16) & 1);
    return {static_cast<std::uint16_t>((bits + round_to_even) >> 16)};
  } else if constexpr (std::is_same_v<T, gloo::float16>) {
    return gloo::cpu_float2half_rn(value);
  } else {
    return static_cast<T>(value);
  }
}

template <class T>
bool is_nan(T value) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
  return false;
}

struct Sum {
  static auto apply(auto a, auto b) { return a + b; }
};
struct Min {
  static auto apply(auto a, auto b) { return b < a || is_nan(b) ? b : a; }
};
struct Max {
  static auto apply(auto a, auto b) { return a < b || is_nan(b) ? b : a; }
};

template <class T, class Op>
void reduce(void* result, const void* a, const void* b, std::size_t count) {
  auto* to = static_cast<T*>(result);
  const auto* left = static_cast<const T*>(a);
  const auto* right = static_cast<const T*>(b);
#pragma GCC ivdep  // `result` is `a` or lies elsewhere: no element depends on another
  for (std::size_t i = 0; i < count; ++i) to[i] = narrow<T>(Op::apply(widen(left[i]), widen(right[i])));
}

template <class T>
void divide_all(void* data, std::size_t count, int divisor) {
  auto* values = static_cast<T*>(data);
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = widen(values[i]);
    values[i] = narrow<T>(value / static_cast<decltype(value)>(divisor));
  }
}

template <class T>
Reduce function_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::average:
      return reduce<T, Sum>;
    case ReduceOp::min:
      return reduce<T, Min>;
    case ReduceOp::max:
      return reduce<T, Max>;
  }
  return nullptr;
}

}  // namespace

Reduce reduce_function(ElementType type, ReduceOp op) {
  switch (type) {
    case ElementType::f32:
      return function_of<float>(op);
    case ElementType::f64:
      return function_of<double>(op);
    case ElementType::f16:
      return function_of<gloo::float16>(op);
    case ElementType::bf16:
      return function_of<BFloat16>(op);
    case ElementType::i8:
      return function_of<std::int8_t>(op);
    case ElementType::u8:
      return function_of<std::uint8_t>(op);
    case ElementType::i32:
      return function_of<std::int32_t>(op);
    case ElementType::i64:
      return function_of<std::int64_t>(op);
  }
  return nullptr;
}

void divide(void* data, std::size_t count, ElementType type, int divisor) {
  if (type == ElementType::f32) divide_all<float>(data, count, divisor);
  if (type == ElementType::f64) divide_all<double>(data, count, divisor);
  if (type == ElementType::f16) divide_all<gloo::float16>(data, count, divisor);
  if (type == ElementType::bf16) divide_all<BFloat16>(data, count, divisor);
}

}  // namespace muster::worker
