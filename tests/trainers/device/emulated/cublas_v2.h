// The part of cuBLAS that the module uses: one product of matrices by columns, with the checks that the real one makes.
#pragma once

#include "tests/trainers/device/emulated/cuda_runtime.h"

enum cublasStatus_t { CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_INVALID_VALUE };
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T };
using cublasHandle_t = struct EmulatedBlas*;

inline cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  static char blas;
  *handle = reinterpret_cast<cublasHandle_t>(&blas);
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetStream(cublasHandle_t, cudaStream_t) { return CUBLAS_STATUS_SUCCESS; }
inline const char* cublasGetStatusName(cublasStatus_t) { return "CUBLAS_STATUS_INVALID_VALUE"; }
inline const char* cublasGetStatusString(cublasStatus_t) { return "invalid value"; }

/// c (m, n) = alpha op(a) op(b) + beta c, where element (i, j) of a matrix lies at i + j * its leading dimension.
cublasStatus_t cublasSgemm_64(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                              std::int64_t m, std::int64_t n, std::int64_t k, const float* alpha,
                              const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
                              const float* beta, float* c, std::int64_t ldc);
