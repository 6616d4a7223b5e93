#include "trainers/parallel/shard.hpp"

#include <gmock/gmock.h>

#include "trainers/optim/adam.hpp"
#include "trainers/tensor/sequential.hpp"

namespace muster::trainers {
namespace {

TEST(Shard, PartsFollowEachOtherAndCoverAllRows) {
  for (std::int64_t rows : {0, 1, 3, 10, 2048}) {
    for (int parts : {1, 2, 3, 4, 7}) {
      std::int64_t next = 0;
      for (int part = 0; part < parts; ++part) {
        const auto own = rows_of_part(rows, parts, part);
        EXPECT_EQ(own.first, next);
        EXPECT_LE(own.count, (rows + parts - 1) / parts);
        next += own.count;
      }
      EXPECT_EQ(next, rows);
    }
  }
}

TEST(Shard, RowsAreSplitAsTorchChunkDoes) {
  // torch.chunk(torch.arange(10), 4): 3, 3, 3, 1; of 5 in 4: 2, 2, 1 and none.
  EXPECT_EQ(rows_of_part(10, 4, 3).first, 9);
  EXPECT_EQ(rows_of_part(10, 4, 3).count, 1);
  EXPECT_EQ(rows_of_part(5, 4, 2).count, 1);
  EXPECT_EQ(rows_of_part(5, 4, 3).first, 5);
  EXPECT_EQ(rows_of_part(5, 4, 3).count, 0);
}

TEST(Shard, StateNamesEachTensorWithItsPlace) {
  auto model = multi_layer_perceptron({3, 4, 2}, 0);
  Adam adam(model.parameters());
  const auto state = state_shards(whole_parameters(model.parameters(), 1), adam);
  ASSERT_EQ(state.parameters.size(), 4U);
  ASSERT_EQ(state.optimizer.size(), 8U);
  EXPECT_EQ(state.parameters[2].name, "2.weight");
  EXPECT_EQ(state.parameters[2].full_shape, (Shape{2, 4}));
  EXPECT_EQ(state.parameters[2].rows.count, 2);
  EXPECT_FALSE(state.parameters[2].first_copy);
  EXPECT_EQ(state.optimizer[6].name, "exp_avg_sq.2.weight");
  EXPECT_EQ(state.optimizer[6].full_shape, (Shape{2, 4}));
  EXPECT_EQ(state.optimizer[6].tensor, adam.state()[6].tensor);
}

}  // namespace
}  // namespace muster::trainers
