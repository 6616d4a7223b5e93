#include "trainers/tensor/matmul.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "trainers/tensor/random.hpp"

namespace muster::trainers {
namespace {

Tensor random_matrix(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  Tensor matrix({rows, columns});
  Random random(seed, 0);
  for (auto& value : matrix.values()) value = random.uniform(-1, 1);
  return matrix;
}

using Element = std::function<float(std::int64_t, std::int64_t)>;

void expect_product(const Tensor& out, std::int64_t k, const Element& a, const Element& b) {
  for (std::int64_t i = 0; i < out.rows(); ++i) {
    for (std::int64_t j = 0; j < out.columns(); ++j) {
      double sum = 0;
      for (std::int64_t l = 0; l < k; ++l) sum += static_cast<double>(a(i, l)) * b(l, j);
      ASSERT_NEAR(out.row(i)[j], sum, 1e-4) << i << ", " << j;
    }
  }
}

TEST(Matmul, AllThreeOrientations) {
  const auto a = random_matrix(5, 70, 1);
  const auto at = random_matrix(70, 5, 2);
  const auto b = random_matrix(70, 9, 3);
  const auto bt = random_matrix(9, 70, 4);
  const auto plain = [](const Tensor& m) {
    return Element([&m](std::int64_t i, std::int64_t j) { return m.row(i)[j]; });
  };
  const auto transposed = [](const Tensor& m) {
    return Element([&m](std::int64_t i, std::int64_t j) { return m.row(j)[i]; });
  };
  Tensor out;
  multiply_nn(a, b, out);
  ASSERT_EQ(out.shape(), (Shape{5, 9}));
  expect_product(out, 70, plain(a), plain(b));
  multiply_nt(a, bt, out);
  expect_product(out, 70, plain(a), transposed(bt));
  multiply_tn(at, b, out);
  expect_product(out, 70, transposed(at), plain(b));
}

TEST(Matmul, AddsWhereAsked) {
  const auto a = random_matrix(2, 3, 1);
  const auto b = random_matrix(3, 2, 2);
  Tensor once;
  multiply_nn(a, b, once);
  Tensor twice = once.clone();
  multiply_nn(a, b, twice, Into::add);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(twice.values()[i], 2 * once.values()[i], 1e-6);
}

}  // namespace
}  // namespace muster::trainers
