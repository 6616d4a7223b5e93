#include "tests/trainers/device/fenced_device.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <new>
#include <vector>

namespace muster::trainers::test {
namespace {

constexpr std::size_t kPage = 4096;

void* map(int file, std::size_t bytes, int protection) {
  void* address = ::mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (address == MAP_FAILED) throw std::bad_alloc();
  return address;
}

}  // namespace

FencedMemory::FencedMemory(std::size_t bytes) : bytes_(bytes) {
  const int file = ::memfd_create("fenced", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0) throw std::bad_alloc();
  fence_ = static_cast<std::byte*>(map(file, bytes, PROT_NONE));
  pages_ = static_cast<std::byte*>(map(file, bytes, PROT_READ | PROT_WRITE));
  ::close(file);
}

FencedMemory::~FencedMemory() {
  ::munmap(fence_, bytes_);
  ::munmap(pages_, bytes_);
}

std::shared_ptr<void> FencedMemory::allocate(std::size_t bytes) {
  const auto whole = (bytes + kPage - 1) / kPage * kPage;
  if (used_ + whole > bytes_) throw std::bad_alloc();
  auto* pages = pages_ + used_;
  std::shared_ptr<void> block(fence_ + used_,
                              [pages, whole](void*) { ::madvise(pages, whole, MADV_REMOVE); });
  used_ += whole;
  return block;
}

worker::Fault FencedAccelerator::copy_in(void* device, const void* host, std::size_t bytes) {
  std::memcpy(memory_.open(static_cast<std::byte*>(device)), host, bytes);
  return {};
}

worker::Fault FencedAccelerator::copy_out(void* host, const void* device, std::size_t bytes) {
  std::memcpy(host, memory_.open(static_cast<const std::byte*>(device)), bytes);
  return {};
}

std::shared_ptr<float> FencedDevice::allocate(std::int64_t count) {
  const auto block = memory_.allocate(static_cast<std::size_t>(count) * sizeof(float));
  return {block, static_cast<float*>(block.get())};
}

void FencedDevice::copy_in(void* to, const void* host, std::size_t bytes) {
  if (bytes > 0) static_cast<void>(accelerator_.copy_in(to, host, bytes));
}
void FencedDevice::copy_out(void* host, const void* from, std::size_t bytes) {
  if (bytes > 0) static_cast<void>(accelerator_.copy_out(host, from, bytes));
}
void FencedDevice::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0)
    std::memmove(memory_.open(static_cast<std::byte*>(to)), memory_.open(static_cast<const std::byte*>(from)),
                 bytes);
}
void FencedDevice::clear(void* to, std::size_t bytes) {
  if (bytes > 0) std::memset(memory_.open(static_cast<std::byte*>(to)), 0, bytes);
}

void FencedDevice::multiply(const Product& p, const float* a, const float* b, float* out, Into into) {
  a = memory_.open(a);
  b = memory_.open(b);
  out = memory_.open(out);
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      double sum = into == Into::add ? out[i * p.n + j] : 0;
      for (std::int64_t l = 0; l < p.k; ++l)
        sum += static_cast<double>(a[p.a == Factor::transposed ? l * p.m + i : i * p.k + l]) *
               b[p.b == Factor::transposed ? j * p.k + l : l * p.n + j];
      out[i * p.n + j] = static_cast<float>(sum);
    }
  }
}

void FencedDevice::repeat_row(const float* row, std::int64_t rows, std::int64_t columns, float* out) {
  row = memory_.open(row);
  out = memory_.open(out);
  for (std::int64_t i = 0; i < rows * columns; ++i) out[i] = row[i % columns];
}

void FencedDevice::sum_rows(const float* matrix, std::int64_t rows, std::int64_t columns, float* out,
                            Into into) {
  matrix = memory_.open(matrix);
  out = memory_.open(out);
  for (std::int64_t c = 0; c < columns; ++c) {
    double sum = into == Into::add ? out[c] : 0;
    for (std::int64_t r = 0; r < rows; ++r) sum += matrix[r * columns + c];
    out[c] = static_cast<float>(sum);
  }
}

void FencedDevice::relu(float* values, std::int64_t count) {
  values = memory_.open(values);
  for (std::int64_t i = 0; i < count; ++i)
    if (values[i] < 0) values[i] = 0;
}

void FencedDevice::relu_gradient(float* gradient, const float* output, std::int64_t count) {
  gradient = memory_.open(gradient);
  output = memory_.open(output);
  for (std::int64_t i = 0; i < count; ++i)
    if (!(output[i] > 0)) gradient[i] = 0;
}

double FencedDevice::cross_entropy(const float* logits, const std::uint8_t* host_labels, std::int64_t rows,
                                   std::int64_t classes, float* gradient) {
  logits = memory_.open(logits);
  gradient = memory_.open(gradient);
  double total = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* in = logits + r * classes;
    double greatest = in[0];
    for (std::int64_t c = 1; c < classes; ++c) greatest = std::max<double>(greatest, in[c]);
    double sum = 0;
    for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(in[c] - greatest);
    total += std::log(sum) + greatest - in[host_labels[r]];
    for (std::int64_t c = 0; c < classes; ++c) {
      const double share = std::exp(in[c] - greatest) / sum - (c == host_labels[r] ? 1 : 0);
      gradient[r * classes + c] = static_cast<float>(share / static_cast<double>(rows));
    }
  }
  return total / static_cast<double>(rows);
}

std::int64_t FencedDevice::count_correct(const float* logits, const std::uint8_t* host_labels,
                                         std::int64_t rows, std::int64_t classes) {
  logits = memory_.open(logits);
  std::int64_t correct = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    std::int64_t guess = 0;
    for (std::int64_t c = 1; c < classes; ++c)
      if (logits[r * classes + c] > logits[r * classes + guess]) guess = c;
    if (guess == host_labels[r]) ++correct;
  }
  return correct;
}

void FencedDevice::sgd(const SgdStep& step, const float* gradient, float* value, std::int64_t count) {
  gradient = memory_.open(gradient);
  value = memory_.open(value);
  for (std::int64_t i = 0; i < count; ++i) {
    const float whole = gradient[i] + step.decay * value[i];
    value[i] = value[i] - step.rate * whole;
  }
}

void FencedDevice::sgd_with_momentum(const SgdStep& step, const float* gradient, float* value, float* buffer,
                                     std::int64_t count) {
  gradient = memory_.open(gradient);
  value = memory_.open(value);
  buffer = memory_.open(buffer);
  for (std::int64_t i = 0; i < count; ++i) {
    const float whole = gradient[i] + step.decay * value[i];
    buffer[i] = step.momentum * buffer[i] + whole;
    value[i] = value[i] - step.rate * buffer[i];
  }
}

void FencedDevice::adam(const AdamStep& step, const float* gradient, float* value, float* m, float* v,
                        std::int64_t count) {
  gradient = memory_.open(gradient);
  value = memory_.open(value);
  m = memory_.open(m);
  v = memory_.open(v);
  for (std::int64_t i = 0; i < count; ++i) {
    const float shrunk = value[i] * step.shrink;
    const float whole = gradient[i] + step.gradient_decay * shrunk;
    m[i] = m[i] * step.beta1 + whole * step.one_minus_beta1;
    v[i] = v[i] * step.beta2 + whole * whole * step.one_minus_beta2;
    const float root = std::sqrt(v[i]) * step.inverse_root_of_bias + step.epsilon;
    value[i] = shrunk - step.step_size * m[i] / root;
  }
}

void FencedDevice::scale(float* values, float factor, std::int64_t count) {
  values = memory_.open(values);
  for (std::int64_t i = 0; i < count; ++i) values[i] = values[i] * factor;
}

double FencedDevice::sum_of_squares(const float* values, std::int64_t count) {
  values = memory_.open(values);
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(values[i]) * values[i];
  return sum;
}

bool FencedDevice::all_finite(const float* values, std::int64_t count) {
  values = memory_.open(values);
  bool finite = true;
  for (std::int64_t i = 0; i < count; ++i) finite = finite && values[i] - values[i] == 0;
  return finite;
}

/// By arithmetic, where the others shift bits: the float32 is split into what bfloat16 can hold and a rest.
void FencedDevice::narrow(std::uint16_t* to, const float* from, std::int64_t count) {
  to = memory_.open(to);
  from = memory_.open(from);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(from[i]);
    auto upper = static_cast<std::uint16_t>(bits / 0x10000);
    const auto lower = bits % 0x10000;
    if (std::isnan(from[i]))
      upper = static_cast<std::uint16_t>(upper | 0x40);
    else if (lower > 0x8000 || (lower == 0x8000 && upper % 2 == 1))
      ++upper;
    to[i] = upper;
  }
}

void FencedDevice::widen(float* to, const std::uint16_t* from, std::int64_t count) {
  to = memory_.open(to);
  from = memory_.open(from);
  for (std::int64_t i = 0; i < count; ++i) to[i] = std::bit_cast<float>(std::uint32_t{from[i]} * 0x10000U);
}

}  // namespace muster::trainers::test
