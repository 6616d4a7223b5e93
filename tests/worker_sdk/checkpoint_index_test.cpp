#include "worker_sdk/src/checkpoint_index.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "worker_sdk/src/checksum.hpp"

namespace muster::worker {
namespace {

CheckpointIndex sample() {
  return {
      .step = 400,
      .facts = {{"epoch", "2"}, {"note", "a \"quoted\" text"}},
      .parts = {{part_name(0, 2), 1234, std::string(32, 'a')}, {part_name(1, 2), 0, std::string(32, 'b')}},
      .tensors = {{"w", ElementType::f32, {2, 3}, {{0, 0, 1}, {1, 1, 1}}},
                  {"b", ElementType::bf16, {}, {{1, 0, 1}}}}};
}

TEST(CheckpointIndex, IsReadBackAsItWas) {
  const auto text = encode_index(sample());
  const auto index = decode_index(text);
  EXPECT_EQ(index.step, 400);
  EXPECT_EQ(index.facts, sample().facts);
  ASSERT_EQ(index.parts.size(), 2U);
  EXPECT_EQ(index.parts[0].file, "part-00000-of-00002.safetensors");
  EXPECT_EQ(index.parts[0].bytes, 1234U);
  ASSERT_EQ(index.tensors.size(), 2U);
  EXPECT_EQ(index.tensors[1].type, ElementType::bf16);
  ASSERT_EQ(index.tensors[0].slices.size(), 2U);
  EXPECT_EQ(index.tensors[0].slices[1].first_row, 1);
  EXPECT_EQ(index.tensors[1].slices[0].part, 1U);
  EXPECT_TRUE(nlohmann::json::accept(text)) << "other tools must be able to read it";
}

TEST(CheckpointIndex, EveryFlippedBitAndEveryCutIsSeen) {
  const auto text = encode_index(sample());
  for (std::size_t i = 0; i < text.size(); ++i) {
    EXPECT_THROW(decode_index(text.substr(0, i)), CheckpointError);
    for (int bit = 0; bit < 8; ++bit) {
      auto flipped = text;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      EXPECT_THROW(decode_index(flipped), CheckpointError) << "byte " << i << " bit " << bit;
    }
  }
  EXPECT_THROW(decode_index(text + " "), CheckpointError);
}

TEST(CheckpointIndex, APartLiesInTheCheckpointsFolder) {
  auto index = sample();
  index.parts[0].file = "../../etc/passwd";
  EXPECT_THROW(decode_index(encode_index(index)), CheckpointError);
  index = sample();
  index.tensors[1].slices[0].part = 2;
  EXPECT_THROW(decode_index(encode_index(index)), CheckpointError);
}

TEST(CheckpointIndex, EachRowIsInOnePart) {
  const auto fault = [](std::vector<IndexedSlice> slices,
                        std::vector<std::int64_t> shape = {2, 3}) -> std::string {
    auto index = sample();
    index.tensors[0].slices = std::move(slices);
    index.tensors[0].shape = std::move(shape);
    try {
      decode_index(encode_index(index));
      return "none";
    } catch (const CheckpointError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(fault({{1, 0, 1}, {0, 1, 1}}), "none");
  EXPECT_EQ(fault({}, {0, 3}), "none");
  EXPECT_EQ(fault({{0, 0, 1}}), "index.json: tensor 'w': rows 1 to 1 are in no part");
  EXPECT_EQ(fault({{0, 1, 1}}), "index.json: tensor 'w': its slices do not follow each other at row 0");
  EXPECT_EQ(fault({{0, 0, 3}}), "index.json: tensor 'w': its slices do not follow each other at row 0");
  EXPECT_EQ(fault({{0, 0, 1}, {0, 1, 1}}), "index.json: tensor 'w' is in a part twice");
  EXPECT_EQ(fault({{0, 0, 1}}, {1, INT64_MAX}), "index.json: tensor 'w' has an impossible shape");
}

TEST(CheckpointIndex, TheFirstVersionIsStillRead) {
  const std::string body = R"({"version": 1, "step": 3, "facts": {}, "parts": [{"file":
    "part-00000-of-00001.safetensors", "bytes": 9, "checksum": "x"}], "tensors": [{"name": "w", "type": "F32",
    "shape": [4, 2], "part": 0}]})";
  const auto checksum = checksum_of(std::as_bytes(std::span(body)));
  const auto index = decode_index("{\"checksum\":\"" + checksum + "\",\"index\":" + body + "}\n");
  ASSERT_EQ(index.tensors.size(), 1U);
  ASSERT_EQ(index.tensors[0].slices.size(), 1U);
  EXPECT_EQ(index.tensors[0].slices[0].rows, 4);
}

TEST(CheckpointIndex, AFactThatIsNotTextIsRefused) {
  auto index = sample();
  index.facts["x"] = "\xff\xfe";
  EXPECT_THROW(encode_index(index), CheckpointError);
}

TEST(CheckpointIndex, NamesTheFirstDifferenceToTheModel) {
  const auto index = sample();
  const TensorRef w{.name = "w", .type = ElementType::f32, .shape = {2, 3}};
  const TensorRef b{.name = "b", .type = ElementType::bf16, .shape = {}};
  const auto with = [&](std::vector<TensorRef> tensors) {
    return difference(index, tensors).value_or("same");
  };
  EXPECT_EQ(with({b, w}), "same");
  EXPECT_EQ(with({w}), "of another model: it has a tensor 'b' that is not here");
  EXPECT_EQ(with({w, b, {.name = "c"}}), "of another model: it has no tensor 'c'");
  EXPECT_EQ(with({{.name = "w", .shape = {3, 2}}, b}),
            "of another model: tensor 'w' has shape [2, 3], here [3, 2]");
  EXPECT_EQ(with({w, {.name = "b", .type = ElementType::f16}}),
            "of another model: tensor 'b' is BF16, here F16");
}

}  // namespace
}  // namespace muster::worker
