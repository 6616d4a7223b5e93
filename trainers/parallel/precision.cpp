#include "trainers/parallel/precision.hpp"

namespace muster::trainers {
namespace {

std::size_t size_of_numbers(worker::ElementType type, std::int64_t count) {
  return worker::size_of(type) * static_cast<std::size_t>(count);
}

}  // namespace

void store_numbers(Device& device, worker::ElementType type, void* to, std::int64_t offset, const float* from,
                   std::int64_t count) {
  if (type == worker::ElementType::bf16) {
    device.narrow(static_cast<std::uint16_t*>(to) + offset, from, count);
  } else {
    device.copy(static_cast<float*>(to) + offset, from, size_of_numbers(type, count));
  }
}

void store_zeros(Device& device, worker::ElementType type, void* to, std::int64_t offset,
                 std::int64_t count) {
  device.clear(static_cast<std::byte*>(to) + size_of_numbers(type, offset), size_of_numbers(type, count));
}

void load_numbers(Device& device, worker::ElementType type, const void* from, std::int64_t offset, float* to,
                  std::int64_t count) {
  if (type == worker::ElementType::bf16) {
    device.widen(to, static_cast<const std::uint16_t*>(from) + offset, count);
  } else {
    device.copy(to, static_cast<const float*>(from) + offset, size_of_numbers(type, count));
  }
}

}  // namespace muster::trainers
