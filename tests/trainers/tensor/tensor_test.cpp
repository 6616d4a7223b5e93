#include "trainers/tensor/tensor.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace muster::trainers {
namespace {

TEST(Tensor, StartsAsZerosOnACacheLine) {
  const Tensor tensor({3, 5});
  EXPECT_EQ(tensor.count(), 15);
  EXPECT_EQ(tensor.rows(), 3);
  EXPECT_EQ(tensor.columns(), 5);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data()) % 64, 0U);
  for (float value : tensor.values()) EXPECT_EQ(value, 0.0F);
}

TEST(Tensor, PartsShareTheirBlocksStorageAndOutliveIt) {
  Tensor part;
  {
    Tensor block({10});
    std::iota(block.values().begin(), block.values().end(), 0.0F);
    part = Tensor::part_of(block, 4, {2, 3});
    block.values()[4] = 40;
  }
  EXPECT_EQ(part.row(0)[0], 40);
  EXPECT_EQ(part.row(1)[2], 9);
}

TEST(Tensor, ResizingToLessKeepsTheStorage) {
  Tensor tensor({4, 4});
  const auto* data = tensor.data();
  tensor.resize({2, 4});
  EXPECT_EQ(tensor.data(), data);
  EXPECT_EQ(tensor.count(), 8);
  tensor.resize({4, 4});
  EXPECT_EQ(tensor.data(), data);
  tensor.resize({5, 4});
  EXPECT_EQ(tensor.count(), 20);
}

TEST(Tensor, CloneIsItsOwn) {
  Tensor tensor({2});
  Tensor copy = tensor.clone();
  tensor.values()[0] = 1;
  EXPECT_EQ(copy.values()[0], 0);
}

TEST(Tensor, ShapesAreReadable) {
  EXPECT_EQ(text_of({256, 784}), "(256, 784)");
  EXPECT_EQ(text_of({10}), "(10)");
  EXPECT_EQ(count_of({}), 1);
}

}  // namespace
}  // namespace muster::trainers
