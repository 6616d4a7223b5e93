// Our own kernels. Each call queues on `stream` and returns what the launch said; pointers are into the GPU's memory.
//
// Sums have a fixed order, so the same GPU gives the same bits in every run. What is done element by element is compiled
// without fused multiply-adds: the same bits as on the CPU, but for exponentials and logarithms.
#pragma once

#include <cuda_runtime.h>

#include "trainers/cuda/launch.hpp"
#include "trainers/device/device.hpp"

namespace muster::trainers::cuda {

cudaError_t repeat_row(cudaStream_t stream, const float* row, std::int64_t rows, std::int64_t columns,
                       float* out);
cudaError_t sum_rows(cudaStream_t stream, const float* matrix, std::int64_t rows, std::int64_t columns,
                     float* out, Into into);
cudaError_t relu(cudaStream_t stream, float* values, std::int64_t count);
cudaError_t relu_gradient(cudaStream_t stream, float* gradient, const float* output, std::int64_t count);

/// `row_losses` has room for `rows` numbers; `mean_loss` becomes their mean.
cudaError_t cross_entropy(cudaStream_t stream, const float* logits, const std::uint8_t* labels,
                          std::int64_t rows, std::int64_t classes, float* gradient, double* row_losses,
                          double* mean_loss);
/// Adds to `*correct`.
cudaError_t count_correct(cudaStream_t stream, const float* logits, const std::uint8_t* labels,
                          std::int64_t rows, std::int64_t classes, unsigned long long* correct);

cudaError_t sgd(cudaStream_t stream, const SgdStep& step, const float* gradient, float* value,
                std::int64_t count);
cudaError_t sgd_with_momentum(cudaStream_t stream, const SgdStep& step, const float* gradient, float* value,
                              float* buffer, std::int64_t count);
cudaError_t adam(cudaStream_t stream, const AdamStep& step, const float* gradient, float* value, float* m,
                 float* v, std::int64_t count);

cudaError_t scale(cudaStream_t stream, float* values, float factor, std::int64_t count);
/// `partials` has room for threads_per_block numbers; `sum` becomes the result.
cudaError_t sum_of_squares(cudaStream_t stream, const float* values, std::int64_t count, double* partials,
                           double* sum);
/// `*found` becomes 1 if some number is not finite, and stays what it was otherwise.
cudaError_t find_not_finite(cudaStream_t stream, const float* values, std::int64_t count,
                            unsigned long long* found);
cudaError_t narrow(cudaStream_t stream, std::uint16_t* to, const float* from, std::int64_t count);
cudaError_t widen(cudaStream_t stream, float* to, const std::uint16_t* from, std::int64_t count);

}  // namespace muster::trainers::cuda
