// Element by element: how two ranks' values become one.
#pragma once

#include <cstddef>

#include "muster/worker/process_group.hpp"

namespace muster::worker {

/// result[i] = op(a[i], b[i]). `result` may be `a` or `b`, but not overlap them otherwise.
using Reduce = void (*)(void* result, const void* a, const void* b, std::size_t count);

/// For the average: the sum. f16 and bf16 are added as f32 and rounded to nearest even; a NaN on either side
/// gives a NaN, for min and max too.
Reduce reduce_function(ElementType type, ReduceOp op);

/// Divides every element. Floating types only.
void divide(void* data, std::size_t count, ElementType type, int divisor);

constexpr bool is_floating(ElementType type) {
  return type == ElementType::f32 || type == ElementType::f64 || type == ElementType::f16 ||
         type == ElementType::bf16;
}

}  // namespace muster::worker
