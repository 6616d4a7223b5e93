#include "trainers/tensor/linear.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "trainers/tensor/matmul.hpp"
#include "trainers/tensor/vectorised.hpp"

namespace muster::trainers {
namespace {

void fill_uniform(Tensor& tensor, float bound, Random& random) {
  for (auto& value : tensor.values()) value = random.uniform(-bound, bound);
}

MUSTER_VECTORISED
void add_to(float* __restrict sum, const float* __restrict values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) sum[i] += values[i];
}

/// Sum over the rows, from the first to the last.
void sum_rows(const Tensor& matrix, Tensor& sum, Into into) {
  if (into == Into::overwrite) std::fill_n(sum.data(), sum.count(), 0.0F);
  for (std::int64_t r = 0; r < matrix.rows(); ++r) add_to(sum.data(), matrix.row(r), matrix.columns());
}

}  // namespace

Linear::Linear(std::int64_t in_features, std::int64_t out_features, Random& random)
    : weight("weight", {out_features, in_features}), bias("bias", {out_features}) {
  const float bound = 1.0F / std::sqrt(static_cast<float>(in_features));
  fill_uniform(weight.value, bound, random);
  fill_uniform(bias.value, bound, random);
}

Tensor& Linear::forward(Tensor& input) {
  assert(input.columns() == weight.value.columns());
  input_ = &input;
  output_.resize({input.rows(), weight.value.rows()});
  // The bias goes in first, so that the product adds to it: one pass over the output less.
  for (std::int64_t r = 0; r < output_.rows(); ++r) {
    std::copy_n(bias.value.data(), output_.columns(), output_.row(r));
  }
  multiply_nt(input, weight.value, output_, Into::add);
  return output_;
}

Tensor& Linear::backward(Tensor& output_gradient, InputGradient input_gradient) {
  assert(input_ != nullptr && output_gradient.rows() == input_->rows());
  sum_rows(output_gradient, bias.gradient, bias.into);
  bias.gradient_is_ready();
  multiply_tn(output_gradient, *input_, weight.gradient, weight.into);
  weight.gradient_is_ready();
  if (input_gradient == InputGradient::wanted) {
    multiply_nn(output_gradient, weight.value, input_gradient_);
  }
  return input_gradient_;
}

}  // namespace muster::trainers
