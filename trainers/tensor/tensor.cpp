#include "trainers/tensor/tensor.hpp"

#include <cassert>
#include <functional>
#include <numeric>

namespace muster::trainers {
namespace {

std::size_t bytes_of(std::int64_t count) { return static_cast<std::size_t>(count) * sizeof(float); }

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

Tensor::Tensor(Shape shape, Device& device)
    : device_(&device),
      shape_(std::move(shape)),
      count_(count_of(shape_)),
      capacity_(count_),
      storage_(count_ == 0 ? nullptr : device.allocate(count_)) {}

Tensor Tensor::part_of(const Tensor& block, std::int64_t offset, Shape shape) {
  Tensor part;
  part.device_ = block.device_;
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

Tensor Tensor::clone() const { return clone_on(*device_); }

Tensor Tensor::clone_on(Device& device) const {
  Tensor copy(shape_, device);
  copy.copy_from(*this);
  return copy;
}

void Tensor::copy_from(const Tensor& other) {
  assert(shape_ == other.shape_);
  if (device_ == other.device_) {
    device_->copy(data(), other.data(), bytes_of(count_));
  } else if (device_->place() == worker::Place::host) {
    other.device_->copy_out(data(), other.data(), bytes_of(count_));
  } else {
    assert(other.device_->place() == worker::Place::host);
    device_->copy_in(data(), other.data(), bytes_of(count_));
  }
}

float Tensor::read(std::int64_t index) const {
  float value = 0;
  device_->copy_out(&value, data() + index, sizeof(value));
  return value;
}

void Tensor::write(std::int64_t index, float value) {
  device_->copy_in(data() + index, &value, sizeof(value));
}

void Tensor::resize(const Shape& shape) {
  if (shape == shape_) return;
  const auto count = count_of(shape);
  if (count > capacity_) {
    *this = Tensor(shape, *device_);
    return;
  }
  shape_ = shape;
  count_ = count;
}

void Tensor::resize(const Shape& shape, Device& device) {
  if (&device != device_) *this = Tensor({0}, device);
  resize(shape);
}

}  // namespace muster::trainers
