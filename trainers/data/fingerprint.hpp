// A number for the contents of memory (XXH3): the same for the same bytes, in all likelihood another for others, and no
// protection against anyone who wants two to be alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace muster::trainers {

/// Goes on from `before`, so that several pieces of memory have one.
std::uint64_t fingerprint_of(std::span<const std::byte> bytes, std::uint64_t before = 0);

}  // namespace muster::trainers
