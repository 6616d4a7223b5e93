#include "trainers/parallel/precision.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace muster::trainers {
namespace {

using worker::ElementType;

float through_bf16(float value) {
  std::uint16_t stored[3] = {};
  store_numbers(cpu_device(), ElementType::bf16, stored, 1, &value, 1);
  EXPECT_EQ(stored[0], 0);
  EXPECT_EQ(stored[2], 0);
  float loaded = 0;
  load_numbers(cpu_device(), ElementType::bf16, stored, 1, &loaded, 1);
  return loaded;
}

TEST(Precision, BFloat16KeepsTheUpperHalfRoundedToNearestEven) {
  EXPECT_EQ(through_bf16(1.0F), 1.0F);
  EXPECT_EQ(through_bf16(-0.0F), 0.0F);
  EXPECT_EQ(through_bf16(1.0F + 0x1p-8F), 1.0F) << "half way: to the even one";
  EXPECT_EQ(through_bf16(1.0F + 3 * 0x1p-8F), 1.0F + 0x1p-6F) << "half way: to the even one";
  EXPECT_EQ(through_bf16(1.0F + 0x1.1p-8F), 1.0F + 0x1p-7F);
  EXPECT_EQ(through_bf16(std::numeric_limits<float>::infinity()), std::numeric_limits<float>::infinity());
  EXPECT_EQ(through_bf16(std::numeric_limits<float>::max()), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(through_bf16(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_TRUE(std::isnan(through_bf16(std::bit_cast<float>(0x7f800001U)))) << "a NaN of low bits stays one";
}

TEST(Precision, Float32IsCopied) {
  const std::vector<float> values{1, 0.1F, -3};
  std::vector<float> stored(4, 9);
  store_numbers(cpu_device(), ElementType::f32, stored.data(), 1, values.data(), 3);
  EXPECT_EQ(stored, (std::vector<float>{9, 1, 0.1F, -3}));
  store_zeros(cpu_device(), ElementType::f32, stored.data(), 0, 2);
  EXPECT_EQ(stored, (std::vector<float>{0, 0, 0.1F, -3}));
}

TEST(Precision, NumbersAreNarrowedAndWidenedInTheirOwnMemory) {
  Tensor scratch({kNumbersAtOnce});
  for (const std::int64_t count : {1, 7, 255, 256, 257, 511, 513, 1000, 70'001}) {
    SCOPED_TRACE(count);
    std::vector<float> values;
    for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i % 251) - 100.0F);
    auto block = values;
    block.push_back(7);
    narrow_in_place(cpu_device(), ElementType::bf16, block.data(), count, scratch);
    auto* end = narrow_end(ElementType::bf16, block.data(), count);
    std::memmove(end, block.data(), static_cast<std::size_t>(count) * sizeof(std::uint16_t));
    widen_in_place(cpu_device(), ElementType::bf16, block.data(), count, scratch);
    EXPECT_EQ(block.back(), 7);
    block.pop_back();
    EXPECT_EQ(block, values);  // integers of 8 bits come back as they were
  }
}

}  // namespace
}  // namespace muster::trainers
