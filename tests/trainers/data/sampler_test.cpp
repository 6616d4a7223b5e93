#include "trainers/data/sampler.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <stdexcept>

namespace muster::trainers {
namespace {

using testing::ElementsAre;
using Indices = std::vector<std::uint32_t>;

/// What one rank gets in one epoch.
Indices epoch_of(SamplerOptions options, std::int64_t epoch = 0, std::int64_t batch_size = 3) {
  DistributedSampler sampler(options);
  sampler.start(epoch);
  Indices all;
  while (!sampler.epoch_is_over()) {
    const auto batch = sampler.next(batch_size);
    all.insert(all.end(), batch.begin(), batch.end());
  }
  EXPECT_TRUE(sampler.next(batch_size).empty());
  return all;
}

TEST(Sampler, WithoutShuffleIsPyTorchsIndexForIndex) {
  // list(DistributedSampler(range(10), num_replicas=4, rank=r, shuffle=False, drop_last=d))
  SamplerOptions options{.count = 10, .world_size = 4, .order = Order::sequential};
  EXPECT_THAT(epoch_of(options), ElementsAre(0, 4, 8));
  options.rank = 2;
  EXPECT_THAT(epoch_of(options), ElementsAre(2, 6, 0));
  options.rank = 3;
  EXPECT_THAT(epoch_of(options), ElementsAre(3, 7, 1));
  options.tail = Tail::drop;
  EXPECT_THAT(epoch_of(options), ElementsAre(3, 7));
}

TEST(Sampler, EveryEpochIsAnotherPermutationOfAllSamples) {
  const SamplerOptions options{.count = 100, .seed = 3};
  auto first = epoch_of(options, 0);
  auto second = epoch_of(options, 1);
  EXPECT_NE(first, second);
  EXPECT_EQ(first, epoch_of(options, 0));
  EXPECT_NE(first, epoch_of({.count = 100, .seed = 4}, 0));
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  EXPECT_EQ(first, second);
  EXPECT_EQ(std::unique(first.begin(), first.end()), first.end());
}

TEST(Sampler, RanksShareNothingWhereTheCountDivides) {
  std::map<std::uint32_t, int> seen;
  for (int rank = 0; rank < 5; ++rank) {
    for (auto index : epoch_of({.count = 100, .world_size = 5, .rank = rank})) ++seen[index];
  }
  EXPECT_EQ(seen.size(), 100U);
  for (const auto& [index, times] : seen) EXPECT_EQ(times, 1) << index;
}

TEST(Sampler, PermutationIsPinned) {
  // A change would silently change what a resumed run trains on.
  EXPECT_THAT(epoch_of({.count = 8, .seed = 1}, 2), ElementsAre(4, 2, 3, 7, 6, 5, 1, 0));
}

TEST(Sampler, LastBatchIsSmallerAndAsLargeOnEveryRank) {
  for (int rank = 0; rank < 2; ++rank) {
    DistributedSampler sampler({.count = 11, .world_size = 2, .rank = rank});
    sampler.start(0);
    EXPECT_EQ(sampler.batches_left(4), 2);
    EXPECT_EQ(sampler.next(4).size(), 4U);
    EXPECT_EQ(sampler.position(), 8);
    EXPECT_EQ(sampler.next(4).size(), 2U);
    EXPECT_TRUE(sampler.epoch_is_over());
    EXPECT_EQ(sampler.position(), 11);
    EXPECT_EQ(sampler.batches_left(4), 0);
  }
}

/// One leg: a world of some size takes some batches from a position on. Returns the new position.
std::int64_t run_leg(int world_size, std::int64_t position, int batches, std::map<std::uint32_t, int>& seen) {
  std::int64_t after = position;
  for (int rank = 0; rank < world_size; ++rank) {
    DistributedSampler sampler({.count = 240, .world_size = world_size, .rank = rank, .seed = 5});
    sampler.start(7, position);
    for (int b = 0; b < batches && !sampler.epoch_is_over(); ++b) {
      for (auto index : sampler.next(4)) ++seen[index];
    }
    after = sampler.position();
  }
  return after;
}

TEST(Sampler, OverRescalesEverySampleIsUsedExactlyOnce) {
  std::map<std::uint32_t, int> seen;
  auto position = run_leg(4, 0, 3, seen);     // 48
  position = run_leg(2, position, 5, seen);   // 88
  position = run_leg(3, position, 1, seen);   // 100
  position = run_leg(5, position, 99, seen);  // 240: the remaining 140 divide by 5
  EXPECT_EQ(position, 240);
  EXPECT_EQ(seen.size(), 240U);
  for (const auto& [index, times] : seen) EXPECT_EQ(times, 1) << index;
}

TEST(Sampler, ARescaledTailRepeatsLessThanOneWorld) {
  std::map<std::uint32_t, int> seen;
  const auto position = run_leg(4, 0, 3, seen);  // 48 of 240, 192 left
  EXPECT_EQ(run_leg(7, position, 99, seen), 240);
  int used = 0;
  for (const auto& [index, times] : seen) used += times;
  EXPECT_EQ(seen.size(), 240U);
  EXPECT_EQ(used, 48 + 196);
}

TEST(Sampler, AnUnevenTailRepeatsAndLeavesOutNothing) {
  std::map<std::uint32_t, int> seen;
  for (int rank = 0; rank < 4; ++rank) {
    DistributedSampler sampler({.count = 29, .world_size = 4, .rank = rank, .seed = 1, .tail = Tail::uneven});
    sampler.start(0, 7);
    for (auto index : sampler.next_of_world(10)) ++seen[index];
    EXPECT_EQ(sampler.entries_taken(), 10);
    for (auto index : sampler.next_of_world(10)) ++seen[index];
    EXPECT_EQ(sampler.position(), 27);
    EXPECT_EQ(sampler.next_of_world(10).size(), rank < 2 ? 1U : 0U);
    for (auto index : sampler.next_of_world(10)) ADD_FAILURE() << index;
    EXPECT_TRUE(sampler.epoch_is_over());
  }
  EXPECT_EQ(seen.size(), 20U);
}

TEST(Sampler, SaysHowManyOfABatchAreRepeats) {
  for (int rank = 0; rank < 4; ++rank) {
    DistributedSampler sampler({.count = 10, .world_size = 4, .rank = rank});
    sampler.start(0);
    sampler.next(2);
    EXPECT_EQ(sampler.repeats(), 0);
    sampler.next(2);
    EXPECT_EQ(sampler.repeats(), rank < 2 ? 0 : 1);
    EXPECT_EQ(sampler.entries_taken(), 4);
  }
}

TEST(Sampler, StartAtTheEndIsOver) {
  DistributedSampler sampler({.count = 10, .world_size = 3});
  sampler.start(0, 10);
  EXPECT_TRUE(sampler.epoch_is_over());
}

TEST(Sampler, RefusesADataSetSmallerThanTheWorld) {
  try {
    DistributedSampler sampler({.count = 3, .world_size = 4});
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "the data set has 3 samples for 4 workers, expected at least one for each");
  }
}

}  // namespace
}  // namespace muster::trainers
