// A device for tests: plain loops, a second implementation of each operation, over memory that the processor cannot touch
// at the addresses that are handed out. Whoever reads or writes there by itself dies of SIGSEGV: so a test on it proves
// that all of training goes through the device.
//
// The same pages are mapped twice: where pointers lead, without any access, and where the device finds them.
#pragma once

#include <memory>

#include "muster/worker/accelerator.hpp"
#include "trainers/device/device.hpp"

namespace muster::trainers::test {

class FencedMemory {
 public:
  explicit FencedMemory(std::size_t bytes);
  ~FencedMemory();
  FencedMemory(const FencedMemory&) = delete;
  FencedMemory& operator=(const FencedMemory&) = delete;

  /// Nothing is handed out twice; what is freed goes back to the system. Throws std::bad_alloc at the end.
  std::shared_ptr<void> allocate(std::size_t bytes);
  template <class T>
  T* open(T* pointer) const {
    if (!pointer) return nullptr;
    const auto address = reinterpret_cast<std::uintptr_t>(pointer) - reinterpret_cast<std::uintptr_t>(fence_);
    return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(pages_) + address);
  }

 private:
  std::size_t bytes_;
  std::size_t used_ = 0;
  std::byte* fence_;
  std::byte* pages_;
};

/// Copies alone: groups reach it through the host (DeviceBackend::host).
class FencedAccelerator final : public worker::Accelerator {
 public:
  explicit FencedAccelerator(FencedMemory& memory) : memory_(memory) {}
  std::string name() const override { return "fenced"; }
  std::string backend() const override { return "none"; }
  worker::Fault copy_in(void* device, const void* host, std::size_t bytes) override;
  worker::Fault copy_out(void* host, const void* device, std::size_t bytes) override;
  worker::Fault make_connection_id(std::string&) override { return "fenced: it has no connections"; }
  worker::Fault connect(const std::string&, int, int, std::chrono::milliseconds,
                        std::unique_ptr<worker::Communicator>&) override {
    return "fenced: it has no connections";
  }

 private:
  FencedMemory& memory_;
};

class FencedDevice : public Device {
 public:
  FencedDevice() : memory_(std::size_t{1} << 30), accelerator_(memory_) {}

  std::string name() const override { return "fenced"; }
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
  FencedMemory memory_;
  FencedAccelerator accelerator_;
};

}  // namespace muster::trainers::test
