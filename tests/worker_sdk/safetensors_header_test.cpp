#include "worker_sdk/src/safetensors_header.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace muster::worker {
namespace {

using testing::HasSubstr;

std::string refusal_of(const std::string& header, std::uint64_t data_bytes) {
  try {
    decode_safetensors_header(header, data_bytes);
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return "accepted";
}

std::string tensor(const std::string& name, const std::string& type, const std::string& shape,
                   const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + type + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets +
         "}";
}

std::string one(const std::string& type, const std::string& shape, const std::string& offsets) {
  return "{" + tensor("a", type, shape, offsets) + "}";
}

std::array<std::byte, 8> length_bytes(std::uint64_t value) {
  std::array<std::byte, 8> bytes{};
  for (unsigned i = 0; i < 8; ++i) bytes[i] = static_cast<std::byte>((value >> (8 * i)) & 0xff);
  return bytes;
}

TEST(SafetensorsHeader, TheExampleOfTheGrammar) {
  const std::vector<TensorRef> tensors{{.name = "a", .type = ElementType::u8, .shape = {2}, .data = nullptr}};
  const auto plan = plan_safetensors(tensors, {});
  EXPECT_EQ(plan.head, std::string("\x38\0\0\0\0\0\0\0", 8) +
                           "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}" +
                           std::string(3, ' '));
}

TEST(SafetensorsHeader, KeepsTheGivenOrderAndAlignsTheData) {
  const std::vector<TensorRef> tensors{
      {.name = "z", .type = ElementType::u8, .shape = {3}, .data = nullptr},
      {.name = "b", .type = ElementType::f32, .shape = {2, 1}, .data = nullptr},
      {.name = "a", .type = ElementType::i64, .shape = {}, .data = nullptr},
  };
  const auto plan = plan_safetensors(tensors, {{"k", "v"}});
  EXPECT_EQ(plan.head.size() % 8, 0U);
  EXPECT_EQ(plan.order, (std::vector<std::size_t>{2, 1, 0}));
  const auto header = decode_safetensors_header(std::string_view(plan.head).substr(8), 19);
  ASSERT_EQ(header.entries.size(), 3U);
  EXPECT_EQ(header.entries[0].name, "z");
  EXPECT_EQ(header.entries[0].begin, 16U);
  EXPECT_EQ(header.entries[1].begin, 8U);
  EXPECT_EQ(header.entries[2].begin, 0U);
  EXPECT_EQ(header.metadata.at("k"), "v");
}

TEST(SafetensorsHeader, RefusesNamesThatCannotBeWritten) {
  const auto plan_of = [](const std::string& first, const std::string& second) {
    const std::vector<TensorRef> tensors{{.name = first, .shape = {1}}, {.name = second, .shape = {1}}};
    return plan_safetensors(tensors, {});
  };
  EXPECT_THROW(plan_of("a", "a"), CheckpointError);
  EXPECT_THROW(plan_of("a", "__metadata__"), CheckpointError);
  EXPECT_THROW(plan_of("a", "\xff"), CheckpointError);
}

TEST(SafetensorsHeader, TheLengthIsCheckedBeforeAnythingIsAllocated) {
  EXPECT_EQ(decode_safetensors_length(length_bytes(2), 10), 2U);
  EXPECT_THROW(decode_safetensors_length(length_bytes(3), 10), CheckpointError);
  EXPECT_THROW(decode_safetensors_length(length_bytes(0), 7), CheckpointError);
  EXPECT_THROW(decode_safetensors_length(length_bytes(std::uint64_t{1} << 63), 10), CheckpointError);
  EXPECT_THROW(decode_safetensors_length(length_bytes(~std::uint64_t{0}), ~std::uint64_t{0}),
               CheckpointError);
  EXPECT_THROW(decode_safetensors_length(length_bytes(100'000'001), 200'000'000), CheckpointError);
}

TEST(SafetensorsHeader, RefusesWhatIsNotAHeader) {
  EXPECT_THAT(refusal_of("", 0), HasSubstr("not JSON"));
  EXPECT_THAT(refusal_of("{\"a\":", 0), HasSubstr("not JSON"));
  EXPECT_THAT(refusal_of(std::string(100'000, '['), 0), HasSubstr("not JSON"));
  EXPECT_THAT(refusal_of("[]", 0), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal_of("{\"a\":1}", 0), HasSubstr("tensor 'a' is not an object"));
  EXPECT_THAT(refusal_of("{\"a\":{}}", 0), HasSubstr("has no dtype"));
  EXPECT_THAT(refusal_of("{\"__metadata__\":[]}", 0), HasSubstr("__metadata__"));
  EXPECT_THAT(refusal_of("{\"__metadata__\":{\"a\":1}}", 0), HasSubstr("'a' is not a text"));
  EXPECT_EQ(refusal_of("{}", 0), "accepted");
}

TEST(SafetensorsHeader, RefusesATensorThatDoesNotFitItsBytes) {
  EXPECT_EQ(refusal_of(one("F32", "[2]", "[0,8]"), 8), "accepted");
  EXPECT_EQ(refusal_of(one("F32", "[]", "[0,4]"), 4), "accepted");
  EXPECT_EQ(refusal_of(one("F32", "[0]", "[0,0]"), 0), "accepted");
  EXPECT_THAT(refusal_of(one("F32", "[2]", "[0,4]"), 4), HasSubstr("hold 4 bytes, its shape 8"));
  EXPECT_THAT(refusal_of(one("F32", "[2]", "[0,8]"), 7), HasSubstr("do not lie in"));
  EXPECT_THAT(refusal_of(one("F32", "[2]", "[8,0]"), 8), HasSubstr("do not lie in"));
  EXPECT_THAT(refusal_of(one("F32", "[2]", "[0,18446744073709551615]"), 8), HasSubstr("do not lie in"));
  EXPECT_THAT(refusal_of(one("F32", "[2]", "[0,18446744073709551616]"), 8), HasSubstr("not a whole number"));
  EXPECT_THAT(refusal_of(one("F32", "[2]", "[-1,7]"), 8), HasSubstr("not a whole number"));
  EXPECT_THAT(refusal_of(one("F32", "[2]", "[0.0,8.0]"), 8), HasSubstr("not a whole number"));
  EXPECT_THAT(refusal_of(one("F32", "[2]", "[0,8,8]"), 8), HasSubstr("[begin, end]"));
  EXPECT_THAT(refusal_of(one("F32", "2", "[0,8]"), 8), HasSubstr("shape is not a list"));
  EXPECT_THAT(refusal_of(one("F32", "[-2]", "[0,8]"), 8), HasSubstr("an extent"));
  EXPECT_THAT(refusal_of(one("F8", "[2]", "[0,8]"), 8), HasSubstr("dtype 'F8'"));
}

TEST(SafetensorsHeader, RefusesAShapeThatOverflows) {
  EXPECT_THAT(refusal_of(one("F32", "[4611686018427387904,4]", "[0,0]"), 0), HasSubstr("2^64"));
  EXPECT_THAT(refusal_of(one("F64", "[9223372036854775807]", "[0,8]"), 8), HasSubstr("2^64"));
  EXPECT_THAT(refusal_of(one("F64", "[9223372036854775808]", "[0,8]"), 8), HasSubstr("too large"));
}

TEST(SafetensorsHeader, RefusesHolesOverlapsAndDuplicates) {
  const auto two = [](const std::string& first, const std::string& second) {
    return "{" + tensor("a", "U8", "[4]", first) + "," + tensor("b", "U8", "[4]", second) + "}";
  };
  EXPECT_EQ(refusal_of(two("[4,8]", "[0,4]"), 8), "accepted");
  EXPECT_THAT(refusal_of(two("[0,4]", "[2,6]"), 8), HasSubstr("overlaps"));
  EXPECT_THAT(refusal_of(two("[0,4]", "[0,4]"), 4), HasSubstr("overlaps"));
  EXPECT_THAT(refusal_of(two("[0,4]", "[5,9]"), 9), HasSubstr("hole"));
  EXPECT_THAT(refusal_of(two("[0,4]", "[4,8]"), 9), HasSubstr("9 bytes of data"));
  EXPECT_THAT(
      refusal_of("{" + tensor("a", "U8", "[4]", "[0,4]") + "," + tensor("a", "U8", "[4]", "[0,4]") + "}", 4),
      HasSubstr("'a' is there twice"));
}

TEST(SafetensorsHeader, NoCutOrFlippedByteDoesHarm) {
  const std::string whole = one("F32", "[2,3]", "[0,24]");
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_NE(refusal_of(whole.substr(0, length), 24), "accepted");
  for (std::size_t i = 0; i < whole.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = whole;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      refusal_of(flipped, 24);  // must only throw CheckpointError, or read a header that fits the data
    }
}

}  // namespace
}  // namespace muster::worker
