#include "trainers/tensor/tensor.hpp"

#include <algorithm>
#include <cassert>
#include <functional>
#include <new>
#include <numeric>

namespace muster::trainers {
namespace {

constexpr std::align_val_t kAlignmentBytes{64};

std::shared_ptr<float> allocate_zeros(std::int64_t count) {
  if (count == 0) return nullptr;
  const auto bytes = static_cast<std::size_t>(count) * sizeof(float);
  auto* data = static_cast<float*>(::operator new(bytes, kAlignmentBytes));
  std::fill_n(data, count, 0.0F);
  return {data, [](float* p) { ::operator delete(p, kAlignmentBytes); }};
}

}  // namespace

std::int64_t count_of(const Shape& shape) {
  std::int64_t product = 1;
  for (auto extent : shape) product *= extent;
  return product;
}

std::string text_of(const Shape& shape) {
  std::string text = "(";
  for (auto extent : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(extent);
  }
  return text + ")";
}

Tensor::Tensor(Shape shape)
    : shape_(std::move(shape)),
      count_(count_of(shape_)),
      capacity_(count_),
      storage_(allocate_zeros(count_)) {}

Tensor Tensor::part_of(const Tensor& block, std::int64_t offset, Shape shape) {
  Tensor part;
  part.count_ = count_of(shape);
  part.capacity_ = part.count_;
  part.shape_ = std::move(shape);
  assert(offset >= 0 && offset + part.count_ <= block.count_);
  part.storage_ = std::shared_ptr<float>(block.storage_, block.storage_.get() + offset);
  return part;
}

std::int64_t Tensor::columns() const {
  if (count_ > 0) return count_ / rows();
  return std::accumulate(shape_.begin() + 1, shape_.end(), std::int64_t{1}, std::multiplies<>());
}

Tensor Tensor::clone() const {
  Tensor copy(shape_);
  copy.copy_from(*this);
  return copy;
}

void Tensor::copy_from(const Tensor& other) {
  assert(shape_ == other.shape_);
  std::copy_n(other.data(), count_, data());
}

void Tensor::resize(const Shape& shape) {
  if (shape == shape_) return;
  const auto count = count_of(shape);
  if (count > capacity_) {
    *this = Tensor(shape);
    return;
  }
  shape_ = shape;
  count_ = count;
}

}  // namespace muster::trainers
