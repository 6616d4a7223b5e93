#include "trainers/data/loader.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <map>
#include <stdexcept>

#include "trainers/data/table.hpp"

namespace muster::trainers {
namespace {

using testing::ElementsAre;

/// Row i is {i}, its label i mod 7.
TableDataset numbers(std::int64_t count) {
  std::vector<float> values;
  std::vector<std::uint8_t> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(i));
    labels.push_back(static_cast<std::uint8_t>(i % 7));
  }
  return {std::move(values), std::move(labels), 1};
}

class LoaderPrefetching : public testing::TestWithParam<int> {
 protected:
  LoaderOptions options(std::int64_t global_batch, std::int64_t piece_size) const {
    return {.global_batch = global_batch, .piece_size = piece_size, .prefetch = GetParam()};
  }
};

TEST_P(LoaderPrefetching, GivesTheSamplersBatchesInOrder) {
  const auto data = numbers(50);
  const SamplerOptions sampler_options{.count = 50, .world_size = 2, .rank = 1, .seed = 3};
  Loader loader(data, sampler_options, options(8, 4));
  DistributedSampler sampler(sampler_options);
  for (std::int64_t epoch : {0, 1}) {
    loader.start(epoch, 0);
    sampler.start(epoch);
    while (const auto* step = loader.next()) {
      const auto expected = sampler.next(4);
      EXPECT_THAT(step->indices, testing::ElementsAreArray(expected));
      ASSERT_EQ(step->pieces.size(), 1U);
      EXPECT_EQ(step->pieces[0].weight, 1);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(step->pieces[0].batch.images.data()[i], static_cast<float>(expected[i]));
        EXPECT_EQ(step->pieces[0].batch.labels[i], expected[i] % 7);
      }
      EXPECT_EQ(step->position, sampler.position());
      EXPECT_EQ(step->ends_epoch, sampler.epoch_is_over());
    }
    EXPECT_TRUE(sampler.epoch_is_over());
    EXPECT_EQ(loader.next(), nullptr);
  }
}

TEST_P(LoaderPrefetching, StartsAnewInMidEpoch) {
  const auto data = numbers(40);
  Loader loader(data, {.count = 40, .order = Order::sequential}, options(4, 4));
  loader.start(0, 0);
  ASSERT_NE(loader.next(), nullptr);
  loader.start(0, 32);
  EXPECT_THAT(loader.next()->indices, ElementsAre(32, 33, 34, 35));
  EXPECT_THAT(loader.next()->indices, ElementsAre(36, 37, 38, 39));
  EXPECT_EQ(loader.next(), nullptr);
}

TEST_P(LoaderPrefetching, AStepIsCutIntoAsManyPiecesOnEveryRankAndTheyWeighWhatTheyHave) {
  const auto data = numbers(23);
  std::map<std::uint32_t, int> seen;
  std::vector<std::size_t> pieces(2);
  std::vector<double> weights(2, 0);
  for (int rank = 0; rank < 3; ++rank) {
    Loader loader(data, {.count = 23, .world_size = 3, .rank = rank, .tail = Tail::uneven}, options(16, 2));
    loader.start(4, 0);
    for (std::size_t s = 0; s < 2; ++s) {
      const auto* step = loader.next();
      ASSERT_NE(step, nullptr);
      EXPECT_EQ(step->world_samples, s == 0 ? 16 : 7);
      if (rank == 0) pieces[s] = step->pieces.size();
      EXPECT_EQ(step->pieces.size(), pieces[s]);
      for (const auto& piece : step->pieces) weights[s] += piece.weight;
      for (auto index : step->indices) ++seen[index];
    }
    EXPECT_EQ(loader.next(), nullptr);
  }
  EXPECT_EQ(pieces, (std::vector<std::size_t>{3, 2}));
  for (double weight : weights) EXPECT_DOUBLE_EQ(weight, 3);
  EXPECT_EQ(seen.size(), 23U);
  for (const auto& [index, times] : seen) EXPECT_EQ(times, 1) << index;
}

/// Fails at the third batch.
class Broken final : public Dataset {
 public:
  std::int64_t size() const override { return 40; }
  std::int64_t features() const override { return 0; }
  std::uint64_t fingerprint() const override { return 0; }
  void gather(std::span<const std::uint32_t>, Batch&) const override {
    if (++calls_ == 3) throw std::runtime_error("the disk is gone");
  }

 private:
  mutable std::atomic<int> calls_ = 0;
};

TEST_P(LoaderPrefetching, WhatTheDataSetThrowsReachesTheCaller) {
  const Broken data;
  Loader loader(data, {.count = 40}, options(4, 4));
  loader.start(0, 0);
  EXPECT_NE(loader.next(), nullptr);
  EXPECT_NE(loader.next(), nullptr);
  EXPECT_THROW(loader.next(), std::runtime_error);
}

INSTANTIATE_TEST_SUITE_P(Loader, LoaderPrefetching, testing::Values(0, 1, 3),
                         [](const auto& param) { return std::to_string(param.param) + "_steps"; });

}  // namespace
}  // namespace muster::trainers
