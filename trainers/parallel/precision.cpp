#include "trainers/parallel/precision.hpp"

#include <algorithm>

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

/// The first ones are their own neighbours and go through the scratch. From number a on, those before 2a have room where
/// the ones before a have been read.
void narrow_in_place(Device& device, worker::ElementType type, void* block, std::int64_t count,
                     Tensor& scratch) {
  if (type == worker::ElementType::f32) return;
  const auto* wide = static_cast<const float*>(block);
  auto done = std::min(count, kNumbersAtOnce);
  store_numbers(device, type, scratch.data(), 0, wide, done);
  device.copy(block, scratch.data(), size_of_numbers(type, done));
  while (done < count) {
    const auto next = std::min(count - done, done);
    store_numbers(device, type, block, done, wide + done, next);
    done += next;
  }
}

/// As above, towards the end: half of what is left has room before the rest of it.
void widen_in_place(Device& device, worker::ElementType type, void* block, std::int64_t count,
                    Tensor& scratch) {
  if (type == worker::ElementType::f32) return;
  auto* wide = static_cast<float*>(block);
  auto* narrow = static_cast<std::byte*>(narrow_end(type, block, count));
  std::int64_t done = 0;
  while (count - done > kNumbersAtOnce) {
    const auto next = (count - done) / 2;
    load_numbers(device, type, narrow, done, wide + done, next);
    done += next;
  }
  const auto left = count - done;
  device.copy(scratch.data(), narrow + size_of_numbers(type, done), size_of_numbers(type, left));
  load_numbers(device, type, scratch.data(), 0, wide + done, left);
}

void* narrow_end(worker::ElementType type, void* block, std::int64_t count) {
  return static_cast<std::byte*>(block) + size_of_numbers(worker::ElementType::f32, count) -
         size_of_numbers(type, count);
}

}  // namespace muster::trainers
