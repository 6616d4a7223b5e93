#include "worker_sdk/src/checkpoint_index.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace muster::worker {
namespace {

CheckpointIndex sample() {
  return {
      .step = 400,
      .facts = {{"epoch", "2"}, {"note", "a \"quoted\" text"}},
      .parts = {{part_name(0, 2), 1234, std::string(32, 'a')}, {part_name(1, 2), 0, std::string(32, 'b')}},
      .tensors = {{"w", ElementType::f32, {2, 3}, 0}, {"b", ElementType::bf16, {}, 1}}};
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
  EXPECT_EQ(index.tensors[1].part, 1U);
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
  index.tensors[0].part = 2;
  EXPECT_THROW(decode_index(encode_index(index)), CheckpointError);
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
