#include "worker_sdk/src/operation.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace muster::worker {
namespace {

TEST(Operation, WhatMustBeTheSameOnAllRanksIsInTheTag) {
  const std::array<std::size_t, 2> counts{3, 4};
  const std::array<std::size_t, 2> other_counts{4, 3};
  const std::set<std::uint32_t> tags{
      collective("all_reduce", 1, "sum, 10 x F32").tag,
      collective("all_reduce", 2, "sum, 10 x F32").tag,
      collective("all_reduce", 1, "min, 10 x F32").tag,
      collective("all_reduce", 1, "sum, 11 x F32").tag,
      collective("all_reduce", 1, "sum, 10 x F64").tag,
      collective("broadcast", 1, "sum, 10 x F32").tag,
      collective("all_gather_uneven", 1, "7 x F32", counts).tag,
      collective("all_gather_uneven", 1, "7 x F32", other_counts).tag,
  };
  EXPECT_EQ(tags.size(), 8U);
  EXPECT_EQ(collective("barrier", 4, "").text, "barrier #4");
  EXPECT_EQ(collective("barrier", 4, "").tag, collective("barrier", 4, "").tag);
  EXPECT_EQ(collective("barrier", 4, "", {}, "node 1").text, "barrier #4 in group node 1");
}

TEST(Operation, SaysOfWhatWhereThatIsTold) {
  const Buffer buffer{nullptr, 5, ElementType::bf16};
  EXPECT_EQ(reduce_text(buffer, ReduceOp::average), "average, 5 x BF16");
  const auto named = buffer.named("gradients of 0.weight to 2.bias");
  EXPECT_EQ(reduce_text(named, ReduceOp::average), "average, 5 x BF16, gradients of 0.weight to 2.bias");
  EXPECT_EQ(broadcast_text(1, named), "from rank 1, 5 x BF16, gradients of 0.weight to 2.bias");
  // Each end of a message may call it as it likes.
  EXPECT_EQ(message(1, 0, 1, named, Direction::send).tag, message(1, 0, 1, buffer, Direction::receive).tag);
}

TEST(Operation, UnevenCountsAreSaid) {
  const Buffer buffer{nullptr, 3, ElementType::f32};
  const std::array<std::size_t, 2> counts{1, 2};
  EXPECT_EQ(uneven_text(buffer, counts), "3 x F32, counts [1, 2]");
  EXPECT_EQ(uneven_text(buffer.named("rows"), counts), "3 x F32, counts [1, 2], rows");
  EXPECT_EQ(uneven_text(buffer, std::array<std::size_t, 17>{1, 2}),
            "3 x F32, counts [1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ...]");
}

TEST(Operation, BothEndsOfAMessageHaveTheSameTag) {
  const Buffer buffer{nullptr, 5, ElementType::i64};
  const auto sent = message(2, 0, 3, buffer, Direction::send);
  const auto received = message(2, 0, 3, buffer, Direction::receive);
  EXPECT_EQ(sent.tag, received.tag);
  EXPECT_EQ(sent.text, "send #2 to rank 3 (5 x I64)");
  EXPECT_EQ(received.text, "receive #2 from rank 0 (5 x I64)");
  EXPECT_NE(sent.tag, message(3, 0, 3, buffer, Direction::send).tag);
  EXPECT_NE(sent.tag, message(2, 0, 3, {nullptr, 6, ElementType::i64}, Direction::send).tag);
}

}  // namespace
}  // namespace muster::worker
