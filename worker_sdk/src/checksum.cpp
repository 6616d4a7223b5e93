#include "worker_sdk/src/checksum.hpp"

#include <fmt/format.h>
#include <xxhash.h>
#ifdef MUSTER_XXHASH_CHOOSES_AT_RUN_TIME
#include <xxh_x86dispatch.h>  // the same function with the widest registers that the processor has
#endif

#include <new>

namespace muster::worker {

Checksum::Checksum() : state_(XXH3_createState()) {
  if (!state_) throw std::bad_alloc();
  XXH3_128bits_reset(state_.get());
}

void Checksum::Free::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

void Checksum::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
}

std::string Checksum::hex() const {
  const auto hash = XXH3_128bits_digest(state_.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string checksum_of(std::span<const std::byte> bytes) {
  Checksum checksum;
  checksum.add(bytes);
  return checksum.hex();
}

}  // namespace muster::worker
