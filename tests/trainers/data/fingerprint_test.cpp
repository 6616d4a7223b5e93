#include "trainers/data/fingerprint.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace muster::trainers {
namespace {

std::uint64_t fingerprint(const std::vector<std::uint8_t>& bytes, std::uint64_t before = 0) {
  return fingerprint_of(std::as_bytes(std::span(bytes)), before);
}

TEST(Fingerprint, IsTheSameForTheSameBytesAndAnotherForEveryBitThatDiffers) {
  std::vector<std::uint8_t> bytes(19, 7);
  EXPECT_EQ(fingerprint(bytes), fingerprint(std::vector<std::uint8_t>(bytes)));
  std::set<std::uint64_t> seen{fingerprint(bytes)};
  for (auto& byte : bytes) {
    for (int bit = 0; bit < 8; ++bit) {
      byte ^= static_cast<std::uint8_t>(1U << bit);
      EXPECT_TRUE(seen.insert(fingerprint(bytes)).second);
      byte ^= static_cast<std::uint8_t>(1U << bit);
    }
  }
}

TEST(Fingerprint, TellsLengthsAndPlacesApart) {
  std::set<std::uint64_t> seen;
  for (std::size_t size = 0; size < 40; ++size)
    EXPECT_TRUE(seen.insert(fingerprint(std::vector<std::uint8_t>(size, 0))).second) << size;
  EXPECT_NE(fingerprint({1, 2}, fingerprint({3})), fingerprint({3}, fingerprint({1, 2})));
  EXPECT_NE(fingerprint({1, 2}, fingerprint({3})), fingerprint({2}, fingerprint({3, 1})));
}

}  // namespace
}  // namespace muster::trainers
