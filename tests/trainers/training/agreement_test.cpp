#include "trainers/training/agreement.hpp"

#include <gmock/gmock.h>

#include <stdexcept>

#include "tests/trainers/thread_group.hpp"
#include "trainers/data/table.hpp"
#include "trainers/tensor/sequential.hpp"

namespace muster::trainers {
namespace {

/// What every rank is told; "nothing" if they agree.
std::string told(const std::vector<Description>& by_rank) {
  ThreadWorld world(static_cast<int>(by_rank.size()));
  std::vector<std::string> texts(by_rank.size(), "nothing");
  world.run([&](ThreadGroup& group) {
    const auto rank = static_cast<std::size_t>(group.rank());
    try {
      check_agreement(group, by_rank[rank]);
    } catch (const std::invalid_argument& error) {
      texts[rank] = error.what();
    }
  });
  EXPECT_THAT(texts, testing::Each(texts[0]));
  return texts[0];
}

Description tensors(const std::vector<std::int64_t>& widths) {
  return describe(multi_layer_perceptron(widths, 0).parameters());
}

TEST(Agreement, NamesTheRankTheTensorAndBothShapes) {
  EXPECT_EQ(told({tensors({8, 4, 2}), tensors({8, 4, 2})}), "nothing");
  EXPECT_EQ(told({tensors({8, 4, 2}), tensors({8, 4, 2}), tensors({8, 5, 2})}),
            "tensor 0.weight: rank 2 has F32 (5, 8), rank 0 has F32 (4, 8); all ranks must be started with "
            "the same options and data");
  EXPECT_EQ(told({tensors({8, 4, 2}), tensors({8, 4, 4, 2})}),
            "tensor 2.weight: rank 1 has F32 (4, 4), rank 0 has F32 (2, 4); all ranks must be started with "
            "the same options and data");
}

TEST(Agreement, NamesOptionsThatDiffer) {
  EXPECT_THAT(told({{{"--batch-size", "64"}}, {{"--batch-size", "32"}}}),
              testing::StartsWith("--batch-size: rank 1 has 32, rank 0 has 64"));
  EXPECT_THAT(told({{{"--lr", "1"}}, {{"--lr", "2"}}}), testing::EndsWith("the same options and data"));
  EXPECT_THAT(told({{{"tensor a", "x"}}, {}}), testing::StartsWith("rank 1 has no tensor a, rank 0 has one"));
}

Description table(std::vector<float> values, std::vector<std::uint8_t> labels, std::int64_t features) {
  return describe("training", TableDataset(std::move(values), std::move(labels), features));
}

TEST(Agreement, NamesDataThatDiffer) {
  const auto data = table({1, 2, 3, 4}, {0, 1}, 2);
  EXPECT_EQ(told({data, table({1, 2, 3, 4}, {0, 1}, 2)}), "nothing");
  EXPECT_THAT(told({data, data, table({1, 2}, {0}, 2)}),
              testing::StartsWith("training samples: rank 2 has 1, rank 0 has 2; all ranks must be started "
                                  "with the same options and data"));
  EXPECT_THAT(told({data, table({1, 2}, {0, 1}, 1)}),
              testing::StartsWith("numbers in a training sample: rank 1 has 1, rank 0 has 2"));
  EXPECT_THAT(told({data, table({1, 2, 3, 4}, {0, 2}, 2)}),
              testing::StartsWith("fingerprint of the training samples: rank 1 has "));
  EXPECT_THAT(told({data, table({1, 2, 3, 5}, {0, 1}, 2)}),
              testing::StartsWith("fingerprint of the training samples: rank 1 has "));
}

}  // namespace
}  // namespace muster::trainers
