// What computes, and where its numbers lie: the one thing that layers, optimizers and parallelism know of a machine.
//
// Pointers to numbers are into the device's memory, unless their name says `host`. Calls take effect in the order in
// which they are made; a device may run them behind the caller, so a result is there only after a call that returns
// something or copies out. One thread at a time computes; copies may be made from any thread.
//
// The CPU's device computes at once, by OpenBLAS and loops whose results are the same bits in every run. Another one
// computes the same to within rounding (`scripts/gpu-check` compares them). What a device cannot do for reasons outside
// of the program throws DeviceError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "muster/worker/process_group.hpp"

namespace muster::worker {
class Accelerator;
}

namespace muster::trainers {

/// "what: why", with the call, the place in the source and the device.
class DeviceError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Into : std::uint8_t {
  overwrite,  ///< out = result
  add         ///< out += result
};

enum class Factor : std::uint8_t { as_it_lies, transposed };

/// out (m, n) = a (m, k) x b (k, n), row-major. A transposed factor lies in memory as (k, m) or (n, k).
struct Product {
  Factor a;
  Factor b;
  std::int64_t m, n, k;
};

/// One step's numbers of Adam and AdamW, the same for every element (optim/adam.hpp).
struct AdamStep {
  float beta1;
  float one_minus_beta1;
  float beta2;
  float one_minus_beta2;
  float step_size;             ///< lr / (1 - beta1^t)
  float inverse_root_of_bias;  ///< 1 / sqrt(1 - beta2^t)
  float epsilon;
  float gradient_decay;  ///< Adam's
  float shrink;          ///< AdamW's: 1 - lr * decay
};

/// Of SGD (optim/sgd.hpp).
struct SgdStep {
  float rate;
  float decay;
  float momentum;
};

class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  virtual std::string name() const = 0;  ///< "cpu", "cuda:0 (NVIDIA H200)"
  virtual worker::Place place() const = 0;
  /// For process groups whose buffers lie here; none where they lie in the host's memory.
  virtual worker::Accelerator* accelerator() { return nullptr; }

  /// Zeros; at least one. Ends with the last pointer, which may outlive neither the device nor the program's main.
  virtual std::shared_ptr<float> allocate(std::int64_t count) = 0;
  /// The host's memory may be used again when the call returns.
  virtual void copy_in(void* to, const void* host, std::size_t bytes) = 0;
  virtual void copy_out(void* host, const void* from, std::size_t bytes) = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual void clear(void* to, std::size_t bytes) = 0;

  virtual void multiply(const Product& product, const float* a, const float* b, float* out, Into into) = 0;
  /// Each of `rows` rows of `out` = `row`.
  virtual void repeat_row(const float* row, std::int64_t rows, std::int64_t columns, float* out) = 0;
  /// out (columns) = the sum over the rows.
  virtual void sum_rows(const float* matrix, std::int64_t rows, std::int64_t columns, float* out,
                        Into into) = 0;
  /// Negative numbers become 0; a NaN stays one.
  virtual void relu(float* values, std::int64_t count) = 0;
  /// The gradient becomes 0 where the output is not positive.
  virtual void relu_gradient(float* gradient, const float* output, std::int64_t count) = 0;
  /// As softmax_cross_entropy (tensor/cross_entropy.hpp) for at least one row.
  virtual double cross_entropy(const float* logits, const std::uint8_t* host_labels, std::int64_t rows,
                               std::int64_t classes, float* gradient) = 0;
  /// As count_correct.
  virtual std::int64_t count_correct(const float* logits, const std::uint8_t* host_labels, std::int64_t rows,
                                     std::int64_t classes) = 0;

  virtual void sgd(const SgdStep& step, const float* gradient, float* value, std::int64_t count) = 0;
  virtual void sgd_with_momentum(const SgdStep& step, const float* gradient, float* value, float* buffer,
                                 std::int64_t count) = 0;
  virtual void adam(const AdamStep& step, const float* gradient, float* value, float* m, float* v,
                    std::int64_t count) = 0;

  virtual void scale(float* values, float factor, std::int64_t count) = 0;
  virtual double sum_of_squares(const float* values, std::int64_t count) = 0;
  virtual bool all_finite(const float* values, std::int64_t count) = 0;
  /// float32 to bfloat16, to nearest even, and back (parallel/precision.hpp).
  virtual void narrow(std::uint16_t* to, const float* from, std::int64_t count) = 0;
  virtual void widen(float* to, const std::uint16_t* from, std::int64_t count) = 0;
};

/// The one that is always there.
Device& cpu_device();

}  // namespace muster::trainers
