#include "worker_sdk/src/slice_plan.hpp"

#include <gmock/gmock.h>

#include <stdexcept>

namespace muster::worker {
namespace {

TensorSlice slice(std::string name, std::int64_t first_row, std::int64_t rows, bool saves = true) {
  return {.name = std::move(name), .shape = {10, 2}, .first_row = first_row, .rows = rows, .saves = saves};
}

std::string fault(const std::vector<std::vector<TensorSlice>>& by_rank) {
  try {
    plan_slices(by_rank);
    return "none";
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

TEST(SlicePlan, EachRankThatSavesRowsHasAPart) {
  const auto plan = plan_slices({{slice("a", 0, 10, false), slice("b", 6, 4)},
                                 {slice("c", 0, 0)},
                                 {slice("a", 0, 10), slice("b", 0, 6), slice("c", 0, 10)}});
  EXPECT_EQ(plan.parts, 2U);
  EXPECT_EQ(plan.part_of_rank, (std::vector<std::optional<std::size_t>>{0, std::nullopt, 1}));
  ASSERT_EQ(plan.tensors.size(), 3U);
  EXPECT_EQ(plan.tensors[0].name, "a");
  ASSERT_EQ(plan.tensors[0].slices.size(), 1U);
  EXPECT_EQ(plan.tensors[0].slices[0].part, 1U);
  ASSERT_EQ(plan.tensors[1].slices.size(), 2U);
  EXPECT_EQ(plan.tensors[1].slices[0].part, 1U);
  EXPECT_EQ(plan.tensors[1].slices[0].rows, 6);
  EXPECT_EQ(plan.tensors[1].slices[1].first_row, 6);
}

TEST(SlicePlan, SlicesTravelAsText) {
  const TensorSlice scalar{.name = "\"t\"", .type = ElementType::bf16, .rows = 1, .saves = false};
  const auto back = decode_slices(encode_slices({slice("w", 3, 4), scalar}));
  ASSERT_EQ(back.size(), 2U);
  EXPECT_EQ(back[0].shape, (std::vector<std::int64_t>{10, 2}));
  EXPECT_EQ(back[0].first_row, 3);
  EXPECT_EQ(back[0].rows, 4);
  EXPECT_EQ(back[1].name, "\"t\"");
  EXPECT_EQ(back[1].type, ElementType::bf16);
  EXPECT_FALSE(back[1].saves);
}

TEST(SlicePlan, DisagreementNamesTheTensorAndTheRanks) {
  auto other = slice("a", 0, 10, false);
  other.shape = {10, 3};
  EXPECT_EQ(fault({{slice("a", 0, 10)}, {other}}),
            "tensor 'a': rank 0 has F32 [10, 2], rank 1 has F32 [10, 3]");
  other = slice("a", 0, 10, false);
  other.type = ElementType::bf16;
  EXPECT_EQ(fault({{slice("a", 0, 10)}, {}, {other}}),
            "tensor 'a': rank 0 has F32 [10, 2], rank 2 has BF16 [10, 2]");
  EXPECT_EQ(fault({{slice("a", 0, 5)}, {slice("a", 6, 4)}}), "tensor 'a': rows 5 to 5 are saved by no rank");
  EXPECT_EQ(fault({{slice("a", 0, 5)}, {slice("a", 5, 4)}}), "tensor 'a': rows 9 to 9 are saved by no rank");
  EXPECT_EQ(fault({{slice("a", 0, 6)}, {slice("a", 5, 5)}}),
            "tensor 'a': row 5 is saved by rank 0 and by rank 1");
  EXPECT_EQ(fault({{slice("a", 8, 4)}}), "tensor 'a': rank 0 holds 4 rows from row 8 on, but there are 10");
  other.shape = {-2, 3};
  other.rows = 0;
  EXPECT_EQ(fault({{other}}).find("tensor 'a' has an impossible shape: [-2, 3]; "), 0U);
  EXPECT_EQ(fault({{slice("a", 0, 5), slice("a", 5, 5)}}), "tensor 'a' is there twice on rank 0");
}

}  // namespace
}  // namespace muster::worker
