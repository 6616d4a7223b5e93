#include "worker_sdk/src/single_group.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "worker_sdk/src/arguments.hpp"

namespace muster::worker {
namespace {

Buffer buffer(std::vector<float>& values) { return buffer_of(std::span(values)); }

TEST(SingleGroup, EveryOperationIsItsOwnResult) {
  const auto group = make_single_group();
  std::vector<float> in{1, 2};
  std::vector<float> out(2);
  const std::vector<std::size_t> counts{2};
  EXPECT_TRUE(group->all_reduce(buffer(in), ReduceOp::average)->done());
  group->broadcast(buffer(in), 0)->wait();
  group->barrier()->wait();
  EXPECT_EQ(in, (std::vector<float>{1, 2}));
  group->reduce_scatter(buffer(in), buffer(out), ReduceOp::sum)->wait();
  EXPECT_EQ(out, in);
  in = {3, 4};
  group->all_gather(buffer(in), buffer(out))->wait();
  EXPECT_EQ(out, in);
  in = {5, 6};
  group->all_gather_uneven(buffer(in), buffer(out), counts)->wait();
  EXPECT_EQ(out, in);
}

TEST(SingleGroup, RefusesWhatABiggerGroupWould) {
  const auto group = make_single_group();
  std::vector<float> two(2);
  std::vector<float> three(3);
  EXPECT_THROW((void)group->broadcast(buffer(two), 1), std::invalid_argument);
  EXPECT_THROW((void)group->all_gather(buffer(two), buffer(three)), std::invalid_argument);
  EXPECT_THROW((void)group->send(buffer(two), 1), std::invalid_argument);
  const Buffer of_no_type{two.data(), 1, static_cast<ElementType>(99)};
  EXPECT_THROW((void)group->broadcast(of_no_type, 0), std::invalid_argument);
  EXPECT_THROW((void)group->all_reduce(buffer(two), static_cast<ReduceOp>(99)), std::invalid_argument);
  EXPECT_THROW((void)group->broadcast({.count = 2}, 0), std::invalid_argument);
  EXPECT_THROW((void)group->all_gather(buffer(two), {.count = 2}), std::invalid_argument);
  const std::size_t bytes_wrap = (std::size_t{1} << 62) + 2;  // times 4 they are 8 again
  EXPECT_THROW((void)group->broadcast({two.data(), bytes_wrap}, 0), std::invalid_argument);
}

// A sum or a product that wraps around would let memory be written that nobody has.
TEST(Arguments, CountsThatCannotBeCountedAreRefused) {
  std::vector<float> two(2);
  const std::size_t most = ~std::size_t{0};
  const std::vector<std::size_t> wrap{2, most, 1};
  EXPECT_THROW(check_uneven(buffer(two), buffer(two), wrap, 0, 3), std::invalid_argument);
  const std::vector<std::size_t> good{2, 0, 0};
  EXPECT_NO_THROW(check_uneven(buffer(two), buffer(two), good, 0, 3));
  EXPECT_THROW(check_parts("x", buffer(two), {two.data(), (most >> 1) + 2}, 2), std::invalid_argument);
  EXPECT_NO_THROW(check_parts("x", buffer(two), {two.data(), 1}, 2));
}

}  // namespace
}  // namespace muster::worker
