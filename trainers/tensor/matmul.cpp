#include "trainers/tensor/matmul.hpp"

#include <cblas.h>

#include <cassert>
#include <cstdlib>

namespace muster::trainers {
namespace {

struct Product {
  CBLAS_TRANSPOSE transpose_a;
  CBLAS_TRANSPOSE transpose_b;
  std::int64_t m, n, k;
};

bool set_threads_once() {
  if (std::getenv("OMP_NUM_THREADS") == nullptr && std::getenv("OPENBLAS_NUM_THREADS") == nullptr) {
    openblas_set_num_threads(1);
  }
  return true;
}

void sgemm(const Product& p, const Tensor& a, const Tensor& b, Tensor& out, Into into) {
  static const bool threads_are_set = set_threads_once();
  (void)threads_are_set;
  if (into == Into::overwrite) out.resize({p.m, p.n});
  assert(out.count() == p.m * p.n);
  if (out.count() == 0) return;
  cblas_sgemm(CblasRowMajor, p.transpose_a, p.transpose_b, static_cast<blasint>(p.m),
              static_cast<blasint>(p.n), static_cast<blasint>(p.k), 1.0F, a.data(),
              static_cast<blasint>(a.columns()), b.data(), static_cast<blasint>(b.columns()),
              into == Into::add ? 1.0F : 0.0F, out.data(), static_cast<blasint>(p.n));
}

}  // namespace

void multiply_nn(const Tensor& a, const Tensor& b, Tensor& out, Into into) {
  assert(a.columns() == b.rows());
  sgemm({CblasNoTrans, CblasNoTrans, a.rows(), b.columns(), a.columns()}, a, b, out, into);
}

void multiply_nt(const Tensor& a, const Tensor& b, Tensor& out, Into into) {
  assert(a.columns() == b.columns());
  sgemm({CblasNoTrans, CblasTrans, a.rows(), b.rows(), a.columns()}, a, b, out, into);
}

void multiply_tn(const Tensor& a, const Tensor& b, Tensor& out, Into into) {
  assert(a.rows() == b.rows());
  sgemm({CblasTrans, CblasNoTrans, a.columns(), b.columns(), a.rows()}, a, b, out, into);
}

}  // namespace muster::trainers
