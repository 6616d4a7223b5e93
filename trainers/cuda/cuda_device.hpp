// The CUDA device: cuBLAS for products, our kernels for the rest, all on one stream.
#pragma once

#include <memory>
#include <mutex>

#include "trainers/cuda/nccl_accelerator.hpp"
#include "trainers/device/device.hpp"

namespace muster::trainers::cuda {

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(std::unique_ptr<Queue> queue) : queue_(std::move(queue)), accelerator_(*queue_) {}

  std::string name() const override { return queue_->name(); }
  worker::Place place() const override { return worker::Place::device; }
  worker::Accelerator* accelerator() override { return &accelerator_; }

  std::shared_ptr<float> allocate(std::int64_t count) override;
  void copy_in(void* to, const void* host, std::size_t bytes) override;
  void copy_out(void* host, const void* from, std::size_t bytes) override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  void clear(void* to, std::size_t bytes) override;

  void multiply(const Product& product, const float* a, const float* b, float* out, Into into) override;
  void repeat_row(const float* row, std::int64_t rows, std::int64_t columns, float* out) override;
  void sum_rows(const float* matrix, std::int64_t rows, std::int64_t columns, float* out, Into into) override;
  void relu(float* values, std::int64_t count) override;
  void relu_gradient(float* gradient, const float* output, std::int64_t count) override;
  double cross_entropy(const float* logits, const std::uint8_t* host_labels, std::int64_t rows,
                       std::int64_t classes, float* gradient) override;
  std::int64_t count_correct(const float* logits, const std::uint8_t* host_labels, std::int64_t rows,
                             std::int64_t classes) override;
  void sgd(const SgdStep& step, const float* gradient, float* value, std::int64_t count) override;
  void sgd_with_momentum(const SgdStep& step, const float* gradient, float* value, float* buffer,
                         std::int64_t count) override;
  void adam(const AdamStep& step, const float* gradient, float* value, float* m, float* v,
            std::int64_t count) override;
  void scale(float* values, float factor, std::int64_t count) override;
  double sum_of_squares(const float* values, std::int64_t count) override;
  bool all_finite(const float* values, std::int64_t count) override;
  void narrow(std::uint16_t* to, const float* from, std::int64_t count) override;
  void widen(float* to, const std::uint16_t* from, std::int64_t count) override;

 private:
  /// Memory of the GPU that grows to what is asked for.
  class Scratch {
   public:
    void* at_least(const Queue& queue, std::size_t bytes);

   private:
    std::shared_ptr<void> block_;
    std::size_t bytes_ = 0;
  };

  void enter() const;
  const std::uint8_t* bring_labels(const std::uint8_t* host_labels, std::int64_t rows);
  cublasHandle_t blas();

  std::unique_ptr<Queue> queue_;
  NcclAccelerator accelerator_;
  cublasHandle_t blas_ = nullptr;
  Scratch labels_;
  Scratch sums_;    ///< what is added up at the end
  Scratch result_;  ///< one number
};

}  // namespace muster::trainers::cuda
