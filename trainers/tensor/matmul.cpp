#include "trainers/tensor/matmul.hpp"

#include <cassert>

namespace muster::trainers {
namespace {

void multiply(const Product& product, const Tensor& a, const Tensor& b, Tensor& out, Into into) {
  if (into == Into::overwrite) out.resize({product.m, product.n}, a.device());
  assert(out.count() == product.m * product.n);
  if (out.count() == 0) return;
  a.device().multiply(product, a.data(), b.data(), out.data(), into);
}

}  // namespace

void multiply_nn(const Tensor& a, const Tensor& b, Tensor& out, Into into) {
  assert(a.columns() == b.rows());
  multiply({Factor::as_it_lies, Factor::as_it_lies, a.rows(), b.columns(), a.columns()}, a, b, out, into);
}

void multiply_nt(const Tensor& a, const Tensor& b, Tensor& out, Into into) {
  assert(a.columns() == b.columns());
  multiply({Factor::as_it_lies, Factor::transposed, a.rows(), b.rows(), a.columns()}, a, b, out, into);
}

void multiply_tn(const Tensor& a, const Tensor& b, Tensor& out, Into into) {
  assert(a.rows() == b.rows());
  multiply({Factor::transposed, Factor::as_it_lies, a.columns(), b.columns(), a.rows()}, a, b, out, into);
}

}  // namespace muster::trainers
