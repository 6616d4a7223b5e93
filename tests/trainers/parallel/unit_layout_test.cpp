#include "trainers/parallel/unit_layout.hpp"

#include <gmock/gmock.h>

namespace muster::trainers {
namespace {

using testing::ElementsAre;

/// A weight, its bias, and another weight whose rows do not divide.
const std::vector<Shape> kShapes{{64, 32}, {64}, {10, 64}};

TEST(UnitLayout, LargeParametersLieInTheBlockAsTheyTravelAndSmallOnesGoTogether) {
  const auto layout = lay_out_unit(kShapes, 4, Flag::one);
  ASSERT_EQ(layout.messages.size(), 3U);
  EXPECT_THAT(layout.messages[0].entries, ElementsAre(0U));
  EXPECT_THAT(layout.messages[1].entries, ElementsAre(2U));
  EXPECT_THAT(layout.messages[2].entries, ElementsAre(1U));
  EXPECT_EQ(layout.messages[0].part_count, 16 * 32);
  EXPECT_EQ(layout.messages[1].part_count, 3 * 64) << "filled up to 12 rows";
  EXPECT_EQ(layout.messages[2].part_count, 16 + 1) << "the bias and the flag";
  EXPECT_EQ(layout.part_count, 16 * 32 + 3 * 64 + 17);
  for (const auto& message : layout.messages)
    EXPECT_EQ(message.place_in_block, 4 * message.place_in_part) << "no two overlap";
  EXPECT_EQ(layout.entries[2].place_in_block, layout.messages[1].place_in_block);
  EXPECT_EQ(layout.travelling_count, 4 * layout.part_count);
  EXPECT_EQ(layout.entries[1].place_in_block, layout.travelling_count) << "a place of its own, at the end";
  EXPECT_EQ(layout.block_count, layout.travelling_count + 64);
  EXPECT_EQ(layout.parameter_count, 64 * 32 + 64 + 640);
}

TEST(UnitLayout, WhatGoesTogetherLiesPartByPart) {
  const auto layout = lay_out_unit(kShapes, 4, Flag::one);
  const auto begin = layout.messages.back().place_in_block;
  EXPECT_EQ(layout.packed_place(layout.entries[1], 0), begin);
  EXPECT_EQ(layout.packed_place(layout.entries[1], 3), begin + 3 * 17);
  EXPECT_EQ(layout.packed_flag(0), begin + 16);
  EXPECT_EQ(layout.packed_flag(3) + 1, layout.travelling_count);
}

TEST(UnitLayout, OnePartIsOneMessageAsItLies) {
  const auto layout = lay_out_unit(kShapes, 1, Flag::none);
  ASSERT_EQ(layout.messages.size(), 1U);
  EXPECT_THAT(layout.messages[0].entries, ElementsAre(0U, 1U, 2U));
  for (const auto& entry : layout.entries) EXPECT_EQ(entry.place_in_block, entry.place_in_part);
  EXPECT_EQ(layout.block_count, layout.parameter_count);
}

TEST(UnitLayout, ManyEqualParametersTravelByThemselvesRatherThanTakeMemoryTwice) {
  const auto layout = lay_out_unit(std::vector<Shape>(100, Shape{8, 8}), 2, Flag::none);
  EXPECT_LE(layout.block_count, layout.parameter_count * 33 / 32);
  EXPECT_EQ(layout.messages.size(), 98U) << "three of a hundred go together";
}

}  // namespace
}  // namespace muster::trainers
