#include "worker_sdk/src/single_group.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

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
  EXPECT_THROW((void)group->broadcast({.count = 2}, 0), std::invalid_argument);
  EXPECT_THROW((void)group->all_gather(buffer(two), {.count = 2}), std::invalid_argument);
}

}  // namespace
}  // namespace muster::worker
