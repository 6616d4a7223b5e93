#include "trainers/data/fingerprint.hpp"

#include <xxhash.h>

namespace muster::trainers {

std::uint64_t fingerprint_of(std::span<const std::byte> bytes, std::uint64_t before) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), before);
}

}  // namespace muster::trainers
