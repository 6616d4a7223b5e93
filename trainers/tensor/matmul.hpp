// Products of matrices, on the CPU by OpenBLAS. The letters say which factor is used transposed (n: as it lies, t:
// transposed), as in BLAS.
//
// OpenBLAS gets one thread, unless OMP_NUM_THREADS or OPENBLAS_NUM_THREADS is set: a node runs several
// workers, and with one thread the order of summation, and so every bit of a result, is the same in each run.
#pragma once

#include "trainers/tensor/tensor.hpp"

namespace muster::trainers {

/// `out` is resized, and comes to lie where the factors do; with Into::add it has the product's shape already.
/// a (m, k), b (k, n) -> out (m, n).
void multiply_nn(const Tensor& a, const Tensor& b, Tensor& out, Into into = Into::overwrite);
/// a (m, k), b (n, k) -> out (m, n) = a bᵀ.
void multiply_nt(const Tensor& a, const Tensor& b, Tensor& out, Into into = Into::overwrite);
/// a (k, m), b (k, n) -> out (m, n) = aᵀ b.
void multiply_tn(const Tensor& a, const Tensor& b, Tensor& out, Into into = Into::overwrite);

}  // namespace muster::trainers
