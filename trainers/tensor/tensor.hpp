// A block of float32 numbers with a shape: contiguous, row-major, aligned to a cache line, in a device's memory.
//
// A Tensor owns its storage, alone or together with the tensors that were cut from the same block by
// `part_of` (gradients that lie next to each other in a communication bucket, say). It moves but does not
// copy by accident: `clone` and `copy_from` say when numbers are copied. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainers/device/device.hpp"

namespace muster::trainers {

using Shape = std::vector<std::int64_t>;

/// Product of the extents; 1 for no extents.
std::int64_t count_of(const Shape& shape);

/// "(256, 784)".
std::string text_of(const Shape& shape);

class Tensor {
 public:
  Tensor() = default;
  /// Zeros.
  explicit Tensor(Shape shape, Device& device = cpu_device());
  /// The numbers [offset, offset + count_of(shape)) of `block`, sharing its storage.
  static Tensor part_of(const Tensor& block, std::int64_t offset, Shape shape);

  Tensor(Tensor&&) noexcept = default;
  Tensor& operator=(Tensor&&) noexcept = default;
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  /// On the same device.
  Tensor clone() const;
  Tensor clone_on(Device& device) const;
  /// Needs the same shape. Either may lie on another device than the CPU; both may, if it is the same one.
  void copy_from(const Tensor& other);
  /// Changes the shape; keeps the storage if it is large enough, so that a last, smaller batch allocates
  /// nothing. The numbers are unspecified afterwards.
  void resize(const Shape& shape);
  void resize(const Shape& shape, Device& device);

  const Shape& shape() const { return shape_; }
  std::int64_t count() const { return count_; }
  /// What resize() can do without memory of its own being asked for.
  std::int64_t capacity() const { return capacity_; }
  /// Of a matrix: the first extent, and the product of the others.
  std::int64_t rows() const { return shape_.empty() ? 1 : shape_.front(); }
  std::int64_t columns() const;

  Device& device() const { return *device_; }
  /// In the device's memory: for the processor only on the CPU's, as are the spans and rows.
  float* data() { return storage_.get(); }
  const float* data() const { return storage_.get(); }
  std::span<float> values() { return {storage_.get(), static_cast<std::size_t>(count_)}; }
  std::span<const float> values() const { return {storage_.get(), static_cast<std::size_t>(count_)}; }
  /// One number, wherever it lies. Costs a transfer each.
  float read(std::int64_t index) const;
  void write(std::int64_t index, float value);
  float* row(std::int64_t index) { return data() + index * columns(); }
  const float* row(std::int64_t index) const { return data() + index * columns(); }

 private:
  Device* device_ = &cpu_device();
  Shape shape_ = {0};
  std::int64_t count_ = 0;
  std::int64_t capacity_ = 0;
  std::shared_ptr<float> storage_;
};

}  // namespace muster::trainers
