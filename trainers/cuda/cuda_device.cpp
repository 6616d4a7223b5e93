#include "trainers/cuda/cuda_device.hpp"

#include <algorithm>

#include "trainers/cuda/kernels.hpp"

namespace muster::trainers::cuda {
namespace {

/// Faults are values up to here: a layer that computes could do nothing about one.
void need(const Fault& fault) {
  if (fault) throw DeviceError(*fault);
}

cublasOperation_t as_blas(Factor factor) { return factor == Factor::transposed ? CUBLAS_OP_T : CUBLAS_OP_N; }

}  // namespace

#define MUSTER_NEED(call) need(MUSTER_CHECKED(queue_->label(), call))

void* CudaDevice::Scratch::at_least(const Queue& queue, std::size_t bytes) {
  if (bytes > bytes_) {
    need(queue.allocate(bytes, block_));
    bytes_ = bytes;
  }
  return block_.get();
}

void CudaDevice::enter() const { need(queue_->enter()); }

/// Made when the first product is computed: it takes a while, and memory.
cublasHandle_t CudaDevice::blas() {
  if (!blas_) {
    MUSTER_NEED(cublasCreate(&blas_));
    MUSTER_NEED(cublasSetStream(blas_, queue_->stream()));
  }
  return blas_;
}

std::shared_ptr<float> CudaDevice::allocate(std::int64_t count) {
  std::shared_ptr<void> block;
  need(queue_->allocate(static_cast<std::size_t>(count) * sizeof(float), block));
  return {block, static_cast<float*>(block.get())};
}

void CudaDevice::copy_in(void* to, const void* host, std::size_t bytes) {
  need(queue_->copy_in(to, host, bytes));
}
void CudaDevice::copy_out(void* host, const void* from, std::size_t bytes) {
  need(queue_->copy_out(host, from, bytes));
}
void CudaDevice::copy(void* to, const void* from, std::size_t bytes) { need(queue_->copy(to, from, bytes)); }
void CudaDevice::clear(void* to, std::size_t bytes) { need(queue_->clear(to, bytes)); }

/// cuBLAS has matrices by columns: what is row-major to us is its transpose to it, and outᵀ = bᵀ aᵀ.
void CudaDevice::multiply(const Product& p, const float* a, const float* b, float* out, Into into) {
  enter();
  if (p.k == 0) {
    if (into == Into::overwrite) clear(out, static_cast<std::size_t>(p.m * p.n) * sizeof(float));
    return;
  }
  const auto lda = p.a == Factor::transposed ? p.m : p.k;
  const auto ldb = p.b == Factor::transposed ? p.k : p.n;
  const float one = 1;
  const float beta = into == Into::add ? 1 : 0;
  MUSTER_NEED(cublasSgemm_64(blas(), as_blas(p.b), as_blas(p.a), p.n, p.m, p.k, &one, b, ldb, a, lda, &beta,
                             out, p.n));
}

void CudaDevice::repeat_row(const float* row, std::int64_t rows, std::int64_t columns, float* out) {
  enter();
  MUSTER_NEED(cuda::repeat_row(queue_->stream(), row, rows, columns, out));
}

void CudaDevice::sum_rows(const float* matrix, std::int64_t rows, std::int64_t columns, float* out,
                          Into into) {
  enter();
  MUSTER_NEED(cuda::sum_rows(queue_->stream(), matrix, rows, columns, out, into));
}

void CudaDevice::relu(float* values, std::int64_t count) {
  enter();
  MUSTER_NEED(cuda::relu(queue_->stream(), values, count));
}

void CudaDevice::relu_gradient(float* gradient, const float* output, std::int64_t count) {
  enter();
  MUSTER_NEED(cuda::relu_gradient(queue_->stream(), gradient, output, count));
}

const std::uint8_t* CudaDevice::bring_labels(const std::uint8_t* host_labels, std::int64_t rows) {
  const auto bytes = static_cast<std::size_t>(rows);
  auto* labels = static_cast<std::uint8_t*>(labels_.at_least(*queue_, bytes));
  copy_in(labels, host_labels, bytes);
  return labels;
}

double CudaDevice::cross_entropy(const float* logits, const std::uint8_t* host_labels, std::int64_t rows,
                                 std::int64_t classes, float* gradient) {
  const auto* labels = bring_labels(host_labels, rows);
  auto* row_losses =
      static_cast<double*>(sums_.at_least(*queue_, static_cast<std::size_t>(rows) * sizeof(double)));
  auto* mean = static_cast<double*>(result_.at_least(*queue_, sizeof(double)));
  MUSTER_NEED(
      cuda::cross_entropy(queue_->stream(), logits, labels, rows, classes, gradient, row_losses, mean));
  double loss = 0;
  copy_out(&loss, mean, sizeof(loss));
  return loss;
}

std::int64_t CudaDevice::count_correct(const float* logits, const std::uint8_t* host_labels,
                                       std::int64_t rows, std::int64_t classes) {
  const auto* labels = bring_labels(host_labels, rows);
  auto* counter = static_cast<unsigned long long*>(result_.at_least(*queue_, sizeof(unsigned long long)));
  clear(counter, sizeof(*counter));
  MUSTER_NEED(cuda::count_correct(queue_->stream(), logits, labels, rows, classes, counter));
  unsigned long long correct = 0;
  copy_out(&correct, counter, sizeof(correct));
  return static_cast<std::int64_t>(correct);
}

void CudaDevice::sgd(const SgdStep& step, const float* gradient, float* value, std::int64_t count) {
  enter();
  MUSTER_NEED(cuda::sgd(queue_->stream(), step, gradient, value, count));
}

void CudaDevice::sgd_with_momentum(const SgdStep& step, const float* gradient, float* value, float* buffer,
                                   std::int64_t count) {
  enter();
  MUSTER_NEED(cuda::sgd_with_momentum(queue_->stream(), step, gradient, value, buffer, count));
}

void CudaDevice::adam(const AdamStep& step, const float* gradient, float* value, float* m, float* v,
                      std::int64_t count) {
  enter();
  MUSTER_NEED(cuda::adam(queue_->stream(), step, gradient, value, m, v, count));
}

void CudaDevice::scale(float* values, float factor, std::int64_t count) {
  enter();
  MUSTER_NEED(cuda::scale(queue_->stream(), values, factor, count));
}

double CudaDevice::sum_of_squares(const float* values, std::int64_t count) {
  enter();
  auto* partials = static_cast<double*>(sums_.at_least(*queue_, threads_per_block * sizeof(double)));
  auto* total = static_cast<double*>(result_.at_least(*queue_, sizeof(double)));
  MUSTER_NEED(cuda::sum_of_squares(queue_->stream(), values, count, partials, total));
  double sum = 0;
  copy_out(&sum, total, sizeof(sum));
  return sum;
}

bool CudaDevice::all_finite(const float* values, std::int64_t count) {
  enter();
  auto* found = static_cast<unsigned long long*>(result_.at_least(*queue_, sizeof(unsigned long long)));
  clear(found, sizeof(*found));
  MUSTER_NEED(cuda::find_not_finite(queue_->stream(), values, count, found));
  unsigned long long some = 0;
  copy_out(&some, found, sizeof(some));
  return some == 0;
}

void CudaDevice::narrow(std::uint16_t* to, const float* from, std::int64_t count) {
  enter();
  MUSTER_NEED(cuda::narrow(queue_->stream(), to, from, count));
}

void CudaDevice::widen(float* to, const std::uint16_t* from, std::int64_t count) {
  enter();
  MUSTER_NEED(cuda::widen(queue_->stream(), to, from, count));
}

}  // namespace muster::trainers::cuda
