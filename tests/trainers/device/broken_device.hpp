// Devices with one fault each, to prove that the comparison finds it: the operation is done, and then one number of what
// it wrote is changed, the last of those of a large call.
#pragma once

#include <string>

#include "tests/trainers/device/fenced_device.hpp"

namespace muster::trainers::test {

class BrokenDevice final : public FencedDevice {
 public:
  explicit BrokenDevice(std::string operation) : broken_(std::move(operation)) {}

  std::shared_ptr<float> allocate(std::int64_t count) override {
    auto block = FencedDevice::allocate(count);
    spoil("allocate", block.get(), count);
    return block;
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    FencedDevice::copy(to, from, bytes);
    spoil("copy", static_cast<float*>(to), static_cast<std::int64_t>(bytes / sizeof(float)));
  }
  void clear(void* to, std::size_t bytes) override {
    FencedDevice::clear(to, bytes);
    spoil("clear", static_cast<float*>(to), static_cast<std::int64_t>(bytes / sizeof(float)));
  }
  void multiply(const Product& p, const float* a, const float* b, float* out, Into into) override {
    FencedDevice::multiply(p, a, b, out, into);
    spoil("multiply", out, p.m * p.n);
  }
  void repeat_row(const float* row, std::int64_t rows, std::int64_t columns, float* out) override {
    FencedDevice::repeat_row(row, rows, columns, out);
    spoil("repeat_row", out, rows * columns);
  }
  void sum_rows(const float* matrix, std::int64_t rows, std::int64_t columns, float* out,
                Into into) override {
    FencedDevice::sum_rows(matrix, rows, columns, out, into);
    spoil("sum_rows", out, columns);
  }
  void relu(float* values, std::int64_t count) override {
    FencedDevice::relu(values, count);
    spoil("relu", values, count);
  }
  void relu_gradient(float* gradient, const float* output, std::int64_t count) override {
    FencedDevice::relu_gradient(gradient, output, count);
    spoil("relu_gradient", gradient, count);
  }
  double cross_entropy(const float* logits, const std::uint8_t* labels, std::int64_t rows,
                       std::int64_t classes, float* gradient) override {
    const double loss = FencedDevice::cross_entropy(logits, labels, rows, classes, gradient);
    spoil("cross_entropy", gradient, rows * classes);
    return loss;
  }
  std::int64_t count_correct(const float* logits, const std::uint8_t* labels, std::int64_t rows,
                             std::int64_t classes) override {
    return FencedDevice::count_correct(logits, labels, rows, classes) + (broken_ == "count_correct" ? 1 : 0);
  }
  void sgd(const SgdStep& step, const float* gradient, float* value, std::int64_t count) override {
    FencedDevice::sgd(step, gradient, value, count);
    spoil("sgd", value, count);
  }
  void sgd_with_momentum(const SgdStep& step, const float* gradient, float* value, float* buffer,
                         std::int64_t count) override {
    FencedDevice::sgd_with_momentum(step, gradient, value, buffer, count);
    spoil("sgd_with_momentum", buffer, count);
  }
  void adam(const AdamStep& step, const float* gradient, float* value, float* m, float* v,
            std::int64_t count) override {
    FencedDevice::adam(step, gradient, value, m, v, count);
    spoil("adam", v, count);
  }
  void scale(float* values, float factor, std::int64_t count) override {
    FencedDevice::scale(values, factor, count);
    spoil("scale", values, count);
  }
  double sum_of_squares(const float* values, std::int64_t count) override {
    return FencedDevice::sum_of_squares(values, count) * (broken_ == "sum_of_squares" ? 1.0001 : 1);
  }
  bool all_finite(const float* values, std::int64_t count) override {
    return broken_ == "all_finite" || FencedDevice::all_finite(values, count);
  }
  void narrow(std::uint16_t* to, const float* from, std::int64_t count) override {
    FencedDevice::narrow(to, from, count);
    spoil("narrow", reinterpret_cast<float*>(to), count / 2);
  }
  void widen(float* to, const std::uint16_t* from, std::int64_t count) override {
    FencedDevice::widen(to, from, count);
    spoil("widen", to, count);
  }

 private:
  /// One in a thousand too much, or 1 where there was 0.
  void spoil(const char* operation, float* values, std::int64_t count) {
    if (broken_ != operation || count < 10) return;
    float value = 0;
    copy_out(&value, values + count - 1, sizeof(value));
    value = value == 0 ? 1 : value * 1.001F;
    copy_in(values + count - 1, &value, sizeof(value));
  }

  std::string broken_;
};

}  // namespace muster::trainers::test
