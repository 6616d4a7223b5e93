#include "worker_sdk/src/reduction.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace muster::worker {
namespace {

template <class T>
std::vector<T> reduced(ElementType type, ReduceOp op, std::vector<T> a, const std::vector<T>& b) {
  reduce_function(type, op)(a.data(), a.data(), b.data(), a.size());
  return a;
}

TEST(Reduction, EveryTypeAndOperation) {
  EXPECT_EQ((reduced<float>(ElementType::f32, ReduceOp::sum, {1, 2}, {10, -2})), (std::vector<float>{11, 0}));
  EXPECT_EQ((reduced<double>(ElementType::f64, ReduceOp::max, {1, 2}, {0, 3})), (std::vector<double>{1, 3}));
  EXPECT_EQ((reduced<std::int64_t>(ElementType::i64, ReduceOp::min, {1, 2}, {0, 3})),
            (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ((reduced<std::int32_t>(ElementType::i32, ReduceOp::sum, {1, 2}, {-1, 3})),
            (std::vector<std::int32_t>{0, 5}));
  EXPECT_EQ((reduced<std::uint8_t>(ElementType::u8, ReduceOp::max, {200, 2}, {100, 3})),
            (std::vector<std::uint8_t>{200, 3}));
  EXPECT_EQ((reduced<std::int8_t>(ElementType::i8, ReduceOp::min, {-100, 2}, {100, 3})),
            (std::vector<std::int8_t>{-100, 2}));
}

TEST(Reduction, BFloat16RoundsToNearestEven) {
  // 1.0 = 3f80; one unit in its last place is 2^-7. 1 + 2^-8 lies in the middle and goes to the even 1.0.
  constexpr std::uint16_t one = 0x3f80;
  constexpr std::uint16_t half_unit = 0x3b80;       // 2^-8
  constexpr std::uint16_t more_than_half = 0x3b81;  // a little more
  constexpr std::uint16_t one_and_a_unit = 0x3f81;  // odd
  const auto sum = reduced<std::uint16_t>(ElementType::bf16, ReduceOp::sum, {one, one, one_and_a_unit},
                                          {half_unit, more_than_half, half_unit});
  EXPECT_EQ(sum, (std::vector<std::uint16_t>{one, 0x3f81, 0x3f82}));
}

TEST(Reduction, BFloat16KeepsInfinityAndNaN) {
  constexpr std::uint16_t infinity = 0x7f80;
  constexpr std::uint16_t minus_infinity = 0xff80;
  constexpr std::uint16_t largest = 0x7f7f;
  const auto sum = reduced<std::uint16_t>(ElementType::bf16, ReduceOp::sum, {infinity, infinity, largest},
                                          {0, minus_infinity, largest});
  EXPECT_EQ(sum[0], infinity);
  EXPECT_TRUE(std::isnan(std::bit_cast<float>(std::uint32_t{sum[1]} << 16)));
  EXPECT_EQ(sum[2], infinity);
}

TEST(Reduction, Float16) {
  // 1.5 = 3e00, 0.25 = 3400, 1.75 = 3f00.
  EXPECT_EQ((reduced<std::uint16_t>(ElementType::f16, ReduceOp::sum, {0x3e00}, {0x3400})),
            (std::vector<std::uint16_t>{0x3f00}));
  EXPECT_EQ((reduced<std::uint16_t>(ElementType::f16, ReduceOp::min, {0x3e00}, {0x3400})),
            (std::vector<std::uint16_t>{0x3400}));
}

TEST(Reduction, ANaNOnEitherSideIsNotLost) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (auto op : {ReduceOp::min, ReduceOp::max, ReduceOp::sum}) {
    const auto result = reduced<float>(ElementType::f32, op, {nan, 1}, {1, nan});
    EXPECT_TRUE(std::isnan(result[0]));
    EXPECT_TRUE(std::isnan(result[1]));
  }
}

TEST(Reduction, Divides) {
  std::vector<float> values{3, 1};
  divide(values.data(), 2, ElementType::f32, 3);
  EXPECT_EQ(values, (std::vector<float>{1, 1.0F / 3.0F}));
  std::vector<std::uint16_t> halves{0x4040};  // bf16 3.0
  divide(halves.data(), 1, ElementType::bf16, 2);
  EXPECT_EQ(halves[0], 0x3fc0);  // 1.5
}

}  // namespace
}  // namespace muster::worker
