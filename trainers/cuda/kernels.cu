#include "trainers/cuda/kernels.hpp"

// Macros, so that tests can run the same kernels on the processor (tests/trainers/device/emulated). TOGETHER: the threads
// of a block wait for each other.
#ifndef MUSTER_LAUNCH
#define MUSTER_LAUNCH(kernel, launch, stream, ...) \
  kernel<<<(launch).blocks, (launch).threads, 0, stream>>>(__VA_ARGS__)
#define MUSTER_LAUNCH_TOGETHER MUSTER_LAUNCH
#endif

namespace muster::trainers::cuda {
namespace {

using std::int64_t;

constexpr Launch one_block;

/// This thread's first index, and the distance to its next one.
__device__ int64_t first_index() { return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ int64_t stride() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

/// The sum over the block's threads, known to thread 0. Every thread of the block must call it.
__device__ double sum_over_block(double own) {
  __shared__ double sums[threads_per_block];
  sums[threadIdx.x] = own;
  __syncthreads();
  for (unsigned half = threads_per_block / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  return sums[0];
}

__global__ void repeat_row_kernel(const float* row, int64_t count, int64_t columns, float* out) {
  for (int64_t i = first_index(); i < count; i += stride()) out[i] = row[i % columns];
}

/// A thread for each column, so that neighbours read neighbours. From the first row to the last, as on the CPU.
__global__ void sum_rows_kernel(const float* matrix, int64_t rows, int64_t columns, float* out, bool add) {
  for (int64_t c = first_index(); c < columns; c += stride()) {
    float sum = add ? out[c] : 0.0F;
    for (int64_t r = 0; r < rows; ++r) sum += matrix[r * columns + c];
    out[c] = sum;
  }
}

__global__ void relu_kernel(float* values, int64_t count) {
  // Written so that a NaN stays one.
  for (int64_t i = first_index(); i < count; i += stride()) values[i] = values[i] < 0.0F ? 0.0F : values[i];
}

__global__ void relu_gradient_kernel(float* gradient, const float* output, int64_t count) {
  for (int64_t i = first_index(); i < count; i += stride())
    gradient[i] = output[i] > 0.0F ? gradient[i] : 0.0F;
}

/// The place of a row's greatest number, the first of equals.
__device__ int64_t place_of_greatest(const float* row, int64_t classes) {
  int64_t place = 0;
  for (int64_t c = 1; c < classes; ++c)
    if (row[c] > row[place]) place = c;
  return place;
}

/// A thread for each row: the classes are few.
__global__ void cross_entropy_kernel(const float* logits, const std::uint8_t* labels, int64_t rows,
                                     int64_t classes, float* gradient, double* row_losses) {
  const float scale = 1.0F / static_cast<float>(rows);
  for (int64_t r = first_index(); r < rows; r += stride()) {
    const float* in = logits + r * classes;
    float* out = gradient + r * classes;
    const float greatest = in[place_of_greatest(in, classes)];
    float sum = 0;
    for (int64_t c = 0; c < classes; ++c) {
      out[c] = expf(in[c] - greatest);
      sum += out[c];
    }
    row_losses[r] = log(static_cast<double>(sum)) - static_cast<double>(in[labels[r]] - greatest);
    const float share = scale / sum;
    for (int64_t c = 0; c < classes; ++c) out[c] *= share;
    out[labels[r]] -= scale;
  }
}

/// One block.
__global__ void mean_kernel(const double* values, int64_t count, double* mean) {
  double own = 0;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) own += values[i];
  const double sum = sum_over_block(own);
  if (threadIdx.x == 0) *mean = sum / static_cast<double>(count);
}

__global__ void count_correct_kernel(const float* logits, const std::uint8_t* labels, int64_t rows,
                                     int64_t classes, unsigned long long* correct) {
  for (int64_t r = first_index(); r < rows; r += stride())
    if (place_of_greatest(logits + r * classes, classes) == labels[r]) atomicAdd(correct, 1ULL);
}

__global__ void sgd_kernel(SgdStep step, const float* gradient, float* value, int64_t count) {
  for (int64_t i = first_index(); i < count; i += stride())
    value[i] -= step.rate * (gradient[i] + step.decay * value[i]);
}

__global__ void sgd_with_momentum_kernel(SgdStep step, const float* gradient, float* value, float* buffer,
                                         int64_t count) {
  for (int64_t i = first_index(); i < count; i += stride()) {
    buffer[i] = step.momentum * buffer[i] + (gradient[i] + step.decay * value[i]);
    value[i] -= step.rate * buffer[i];
  }
}

__global__ void adam_kernel(AdamStep step, const float* gradient, float* value, float* m, float* v,
                            int64_t count) {
  for (int64_t i = first_index(); i < count; i += stride()) {
    const float p = value[i] * step.shrink;
    const float g = gradient[i] + step.gradient_decay * p;
    m[i] = m[i] * step.beta1 + g * step.one_minus_beta1;
    v[i] = v[i] * step.beta2 + g * g * step.one_minus_beta2;
    value[i] = p - step.step_size * m[i] / (sqrtf(v[i]) * step.inverse_root_of_bias + step.epsilon);
  }
}

__global__ void scale_kernel(float* values, float factor, int64_t count) {
  for (int64_t i = first_index(); i < count; i += stride()) values[i] *= factor;
}

__global__ void squares_kernel(const float* values, int64_t count, double* partials) {
  double own = 0;
  for (int64_t i = first_index(); i < count; i += stride())
    own += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  const double sum = sum_over_block(own);
  if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

/// One block.
__global__ void sum_kernel(const double* values, int64_t count, double* total) {
  double own = 0;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) own += values[i];
  const double sum = sum_over_block(own);
  if (threadIdx.x == 0) *total = sum;
}

__global__ void find_not_finite_kernel(const float* values, int64_t count, unsigned long long* found) {
  for (int64_t i = first_index(); i < count; i += stride())
    if (!isfinite(values[i])) *found = 1;  // all who write write the same
}

__global__ void narrow_kernel(std::uint16_t* to, const float* from, int64_t count) {
  for (int64_t i = first_index(); i < count; i += stride()) {
    const std::uint32_t bits = __float_as_uint(from[i]);
    const std::uint32_t to_even = 0x7fff + ((bits >> 16) & 1);
    const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
    to[i] = static_cast<std::uint16_t>(is_nan ? (bits >> 16) | 0x40 : (bits + to_even) >> 16);
  }
}

__global__ void widen_kernel(float* to, const std::uint16_t* from, int64_t count) {
  for (int64_t i = first_index(); i < count; i += stride())
    to[i] = __uint_as_float(static_cast<std::uint32_t>(from[i]) << 16);
}

}  // namespace

cudaError_t repeat_row(cudaStream_t stream, const float* row, int64_t rows, int64_t columns, float* out) {
  const auto launch = launch_for(rows * columns);
  MUSTER_LAUNCH(repeat_row_kernel, launch, stream, row, rows * columns, columns, out);
  return cudaGetLastError();
}

cudaError_t sum_rows(cudaStream_t stream, const float* matrix, int64_t rows, int64_t columns, float* out,
                     Into into) {
  const auto launch = launch_for(columns);
  MUSTER_LAUNCH(sum_rows_kernel, launch, stream, matrix, rows, columns, out, into == Into::add);
  return cudaGetLastError();
}

cudaError_t relu(cudaStream_t stream, float* values, int64_t count) {
  const auto launch = launch_for(count);
  MUSTER_LAUNCH(relu_kernel, launch, stream, values, count);
  return cudaGetLastError();
}

cudaError_t relu_gradient(cudaStream_t stream, float* gradient, const float* output, int64_t count) {
  const auto launch = launch_for(count);
  MUSTER_LAUNCH(relu_gradient_kernel, launch, stream, gradient, output, count);
  return cudaGetLastError();
}

cudaError_t cross_entropy(cudaStream_t stream, const float* logits, const std::uint8_t* labels, int64_t rows,
                          int64_t classes, float* gradient, double* row_losses, double* mean_loss) {
  const auto launch = launch_for(rows);
  MUSTER_LAUNCH(cross_entropy_kernel, launch, stream, logits, labels, rows, classes, gradient, row_losses);
  if (const auto code = cudaGetLastError(); code != cudaSuccess) return code;
  MUSTER_LAUNCH_TOGETHER(mean_kernel, one_block, stream, row_losses, rows, mean_loss);
  return cudaGetLastError();
}

cudaError_t count_correct(cudaStream_t stream, const float* logits, const std::uint8_t* labels, int64_t rows,
                          int64_t classes, unsigned long long* correct) {
  const auto launch = launch_for(rows);
  MUSTER_LAUNCH(count_correct_kernel, launch, stream, logits, labels, rows, classes, correct);
  return cudaGetLastError();
}

cudaError_t sgd(cudaStream_t stream, const SgdStep& step, const float* gradient, float* value,
                int64_t count) {
  const auto launch = launch_for(count);
  MUSTER_LAUNCH(sgd_kernel, launch, stream, step, gradient, value, count);
  return cudaGetLastError();
}

cudaError_t sgd_with_momentum(cudaStream_t stream, const SgdStep& step, const float* gradient, float* value,
                              float* buffer, int64_t count) {
  const auto launch = launch_for(count);
  MUSTER_LAUNCH(sgd_with_momentum_kernel, launch, stream, step, gradient, value, buffer, count);
  return cudaGetLastError();
}

cudaError_t adam(cudaStream_t stream, const AdamStep& step, const float* gradient, float* value, float* m,
                 float* v, int64_t count) {
  const auto launch = launch_for(count);
  MUSTER_LAUNCH(adam_kernel, launch, stream, step, gradient, value, m, v, count);
  return cudaGetLastError();
}

cudaError_t scale(cudaStream_t stream, float* values, float factor, int64_t count) {
  const auto launch = launch_for(count);
  MUSTER_LAUNCH(scale_kernel, launch, stream, values, factor, count);
  return cudaGetLastError();
}

cudaError_t sum_of_squares(cudaStream_t stream, const float* values, int64_t count, double* partials,
                           double* sum) {
  const auto launch = launch_for_sum(count);
  MUSTER_LAUNCH_TOGETHER(squares_kernel, launch, stream, values, count, partials);
  if (const auto code = cudaGetLastError(); code != cudaSuccess) return code;
  MUSTER_LAUNCH_TOGETHER(sum_kernel, one_block, stream, partials, launch.blocks, sum);
  return cudaGetLastError();
}

cudaError_t find_not_finite(cudaStream_t stream, const float* values, int64_t count,
                            unsigned long long* found) {
  const auto launch = launch_for(count);
  MUSTER_LAUNCH(find_not_finite_kernel, launch, stream, values, count, found);
  return cudaGetLastError();
}

cudaError_t narrow(cudaStream_t stream, std::uint16_t* to, const float* from, int64_t count) {
  const auto launch = launch_for(count);
  MUSTER_LAUNCH(narrow_kernel, launch, stream, to, from, count);
  return cudaGetLastError();
}

cudaError_t widen(cudaStream_t stream, float* to, const std::uint16_t* from, int64_t count) {
  const auto launch = launch_for(count);
  MUSTER_LAUNCH(widen_kernel, launch, stream, to, from, count);
  return cudaGetLastError();
}

}  // namespace muster::trainers::cuda
