#include "trainers/tensor/linear.hpp"

#include <cassert>
#include <cmath>

#include "trainers/tensor/matmul.hpp"

namespace muster::trainers {
namespace {

void fill_uniform(Tensor& tensor, float bound, Random& random) {
  for (auto& value : tensor.values()) value = random.uniform(-bound, bound);
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
  auto& device = input.device();
  output_.resize({input.rows(), weight.value.rows()}, device);
  // The bias goes in first, so that the product adds to it: one pass over the output less.
  device.repeat_row(bias.value.data(), output_.rows(), output_.columns(), output_.data());
  multiply_nt(input, weight.value, output_, Into::add);
  return output_;
}

Tensor& Linear::backward(Tensor& output_gradient, InputGradient input_gradient) {
  assert(input_ != nullptr && output_gradient.rows() == input_->rows());
  output_gradient.device().sum_rows(output_gradient.data(), output_gradient.rows(), output_gradient.columns(),
                                    bias.gradient.data(), bias.into);
  bias.gradient_is_ready();
  multiply_tn(output_gradient, *input_, weight.gradient, weight.into);
  weight.gradient_is_ready();
  if (input_gradient == InputGradient::wanted) {
    multiply_nn(output_gradient, weight.value, input_gradient_);
  }
  return input_gradient_;
}

}  // namespace muster::trainers
