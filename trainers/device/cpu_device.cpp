#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>

#include "trainers/device/cpu_loops.hpp"

namespace muster::trainers {
namespace {

constexpr std::align_val_t kAlignmentBytes{64};

bool set_threads_once() {
  if (std::getenv("OMP_NUM_THREADS") == nullptr && std::getenv("OPENBLAS_NUM_THREADS") == nullptr) {
    openblas_set_num_threads(1);
  }
  return true;
}

CBLAS_TRANSPOSE as_blas(Factor factor) { return factor == Factor::transposed ? CblasTrans : CblasNoTrans; }

class CpuDevice final : public Device {
 public:
  std::string name() const override { return "cpu"; }
  worker::Place place() const override { return worker::Place::host; }

  std::shared_ptr<float> allocate(std::int64_t count) override {
    const auto bytes = static_cast<std::size_t>(count) * sizeof(float);
    auto* data = static_cast<float*>(::operator new(bytes, kAlignmentBytes));
    std::fill_n(data, count, 0.0F);
    return {data, [](float* p) { ::operator delete(p, kAlignmentBytes); }};
  }
  void copy_in(void* to, const void* host, std::size_t bytes) override { copy(to, host, bytes); }
  void copy_out(void* host, const void* from, std::size_t bytes) override { copy(host, from, bytes); }
  void copy(void* to, const void* from, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void clear(void* to, std::size_t bytes) override {
    if (bytes > 0) std::memset(to, 0, bytes);
  }

  void multiply(const Product& p, const float* a, const float* b, float* out, Into into) override {
    static const bool threads_are_set = set_threads_once();
    (void)threads_are_set;
    if (p.k == 0) {  // BLAS takes no matrix of no columns
      if (into == Into::overwrite) std::fill_n(out, p.m * p.n, 0.0F);
      return;
    }
    const auto lda = p.a == Factor::transposed ? p.m : p.k;
    const auto ldb = p.b == Factor::transposed ? p.k : p.n;
    cblas_sgemm(CblasRowMajor, as_blas(p.a), as_blas(p.b), static_cast<blasint>(p.m),
                static_cast<blasint>(p.n), static_cast<blasint>(p.k), 1.0F, a, static_cast<blasint>(lda), b,
                static_cast<blasint>(ldb), into == Into::add ? 1.0F : 0.0F, out, static_cast<blasint>(p.n));
  }
  void repeat_row(const float* row, std::int64_t rows, std::int64_t columns, float* out) override {
    for (std::int64_t r = 0; r < rows; ++r) std::copy_n(row, columns, out + r * columns);
  }
  /// From the first row to the last.
  void sum_rows(const float* matrix, std::int64_t rows, std::int64_t columns, float* out,
                Into into) override {
    if (into == Into::overwrite) std::fill_n(out, columns, 0.0F);
    for (std::int64_t r = 0; r < rows; ++r) cpu::add_to(out, matrix + r * columns, columns);
  }
  void relu(float* values, std::int64_t count) override { cpu::clamp_negative(values, count); }
  void relu_gradient(float* gradient, const float* output, std::int64_t count) override {
    cpu::mask(gradient, output, count);
  }
  double cross_entropy(const float* logits, const std::uint8_t* host_labels, std::int64_t rows,
                       std::int64_t classes, float* gradient) override {
    return cpu::cross_entropy(logits, host_labels, rows, classes, gradient);
  }
  std::int64_t count_correct(const float* logits, const std::uint8_t* host_labels, std::int64_t rows,
                             std::int64_t classes) override {
    std::int64_t correct = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
      const float* in = logits + r * classes;
      if (std::max_element(in, in + classes) - in == host_labels[r]) ++correct;
    }
    return correct;
  }

  void sgd(const SgdStep& step, const float* gradient, float* value, std::int64_t count) override {
    cpu::sgd(step, gradient, value, count);
  }
  void sgd_with_momentum(const SgdStep& step, const float* gradient, float* value, float* buffer,
                         std::int64_t count) override {
    cpu::sgd_with_momentum(step, gradient, value, buffer, count);
  }
  void adam(const AdamStep& step, const float* gradient, float* value, float* m, float* v,
            std::int64_t count) override {
    cpu::adam(step, gradient, value, m, v, count);
  }

  void scale(float* values, float factor, std::int64_t count) override {
    cpu::multiply(values, factor, count);
  }
  double sum_of_squares(const float* values, std::int64_t count) override {
    return cpu::squares_of(values, count);
  }
  bool all_finite(const float* values, std::int64_t count) override {
    return std::all_of(values, values + count, [](float value) { return std::isfinite(value); });
  }
  void narrow(std::uint16_t* to, const float* from, std::int64_t count) override {
    cpu::narrow(to, from, count);
  }
  void widen(float* to, const std::uint16_t* from, std::int64_t count) override {
    cpu::widen(to, from, count);
  }
};

}  // namespace

Device& cpu_device() {
  static auto& device = *new CpuDevice;  // never destroyed: tensors of static storage may outlive main
  return device;
}

}  // namespace muster::trainers
