// CheckpointStore on several ranks: what rank 0 reads is everyone's.
#include <gmock/gmock.h>

#include "muster/worker/checkpoint.hpp"
#include "tests/worker_sdk/ranks.hpp"
#include "tests/worker_sdk/temporary_folder.hpp"

namespace muster::worker {
namespace {

using test::named;
using test::TemporaryFolder;
using testing::Each;
using testing::HasSubstr;
namespace fs = std::filesystem;

/// Each rank has a folder of its own.
struct Disks {
  explicit Disks(int ranks) {
    for (int rank = 0; rank < ranks; ++rank) folders.push_back(std::make_unique<TemporaryFolder>());
  }
  fs::path of(int rank) const { return folders[static_cast<std::size_t>(rank)]->path() / "ckpt"; }
  std::vector<std::unique_ptr<TemporaryFolder>> folders;
};

struct Weights {
  std::vector<float> w = {0, 0};
  std::vector<double> m = {0};
  std::vector<TensorRef> tensors() {
    return {{.name = "w", .shape = {2}, .data = w.data()},
            {.name = "m", .type = ElementType::f64, .shape = {}, .data = m.data()},
            {.name = "none", .shape = {0}, .data = nullptr}};
  }
};

void save(const fs::path& folder, std::int64_t step, float value) {
  CheckpointStore store(folder, {.round = 7});
  Weights weights{{value, -value}, {value}};
  store.save(step, weights.tensors(), {{"epoch", "3"}, {"empty", ""}});
}

TEST(CheckpointOfAGroup, IsWhatRankZeroReadsOnEveryRankWhateverTheOthersHave) {
  const Disks disks(3);
  save(disks.of(0), 500, 1);
  save(disks.of(0), 600, 2);
  fs::resize_file(disks.of(0) / step_name(600, {.generation = 2, .round = 7}) / "index.json", 3);
  save(disks.of(1), 900, 9);
  EXPECT_THAT(test::errors_of_ranks(3,
                                    [&](ProcessGroup& group) {
                                      CheckpointStore store(disks.of(group.rank()));
                                      Weights weights;
                                      const auto loaded = store.load_newest(weights.tensors(), group);
                                      ASSERT_TRUE(loaded);
                                      EXPECT_EQ(loaded->step, 500);
                                      EXPECT_EQ(loaded->facts, (Facts{{"epoch", "3"}, {"empty", ""}}));
                                      EXPECT_EQ(loaded->path.parent_path(), disks.of(0));
                                      EXPECT_EQ(loaded->lineage.generation, 1);
                                      EXPECT_EQ(loaded->lineage.round, 7);
                                      EXPECT_THAT(loaded->skipped,
                                                  testing::ElementsAre(HasSubstr("step-000000000600-")));
                                      EXPECT_THAT(weights.w, testing::ElementsAre(1, -1));
                                      EXPECT_THAT(weights.m, testing::ElementsAre(1));
                                    }),
              Each(""));
  EXPECT_FALSE(fs::exists(disks.of(2))) << "rank 0 alone begins a run";
  int notes = 0;
  for (const auto& entry : fs::directory_iterator(disks.of(0)))
    notes += entry.path().filename().string().starts_with("step-") ? 0 : 1;
  EXPECT_EQ(notes, 1) << "of that run, which has saved nothing yet";
}

TEST(CheckpointOfAGroup, NothingOnRankZeroIsNothingOnEveryRank) {
  const Disks disks(2);
  save(disks.of(1), 900, 9);
  EXPECT_THAT(test::errors_of_ranks(2,
                                    [&](ProcessGroup& group) {
                                      CheckpointStore store(disks.of(group.rank()));
                                      Weights weights;
                                      EXPECT_FALSE(store.load_newest(weights.tensors(), group));
                                      EXPECT_THAT(weights.w, Each(0));
                                    }),
              Each(""));
}

TEST(CheckpointOfAGroup, WhatFailsOnRankZeroFailsOnEveryRank) {
  const Disks disks(2);
  save(disks.of(0), 500, 1);
  fs::resize_file(disks.of(0) / step_name(500, {.generation = 1, .round = 7}) / "index.json", 3);
  save(disks.of(1), 900, 9);
  EXPECT_THAT(test::errors_of_ranks(2,
                                    [&](ProcessGroup& group) {
                                      CheckpointStore store(disks.of(group.rank()));
                                      Weights weights;
                                      store.load_newest(weights.tensors(), group);
                                    }),
              Each(HasSubstr("none of its 1 checkpoints can be used")));
}

TEST(CheckpointOfAGroup, RanksWithOtherTensorsAreNamedOnEveryRank) {
  const Disks disks(3);
  save(disks.of(0), 500, 1);
  EXPECT_THAT(
      test::errors_of_ranks(3,
                            [&](ProcessGroup& group) {
                              CheckpointStore store(disks.of(group.rank()));
                              Weights weights;
                              auto tensors = weights.tensors();
                              if (group.rank() == 1) tensors[0].shape = {1};
                              store.load_newest(tensors, group);
                            }),
      Each("rank 1 has tensors of other names, types or shapes than rank 0: all ranks must load the same"));
}

}  // namespace
}  // namespace muster::worker
