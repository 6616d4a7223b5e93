#include "muster/worker/sharded_checkpoint.hpp"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "tests/worker_sdk/ranks.hpp"
#include "tests/worker_sdk/sharded_state.hpp"
#include "tests/worker_sdk/temporary_folder.hpp"
#include "tests/worker_sdk/write_limit.hpp"

namespace muster::worker {
namespace {

using test::named;
using test::ShardedState;
using test::Sharing;
using test::TemporaryFolder;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

/// Runs `body` on each rank and expects that none throws.
void on_ranks(int size, const std::function<void(ProcessGroup&)>& body) {
  EXPECT_THAT(test::errors_of_ranks(size, body), Each(""));
}

void save(const fs::path& folder, int size, Sharing sharing, std::int64_t step) {
  on_ranks(size, [&](ProcessGroup& group) {
    ShardedState state(group.rank(), size, sharing);
    state.set(static_cast<float>(step));
    ShardedCheckpoint checkpoint(folder, {}, group, state.slices());
    const auto outcome = checkpoint.save(step, {{"position", std::to_string(step * 10)}});
    EXPECT_EQ(outcome.error, "");
    EXPECT_EQ(outcome.path.filename(), named(step, checkpoint.lineage().generation));
  });
}

void expect_loads(const fs::path& folder, int size, Sharing sharing, std::int64_t step,
                  const testing::Matcher<std::vector<std::string>>& skipped = testing::IsEmpty()) {
  on_ranks(size, [&](ProcessGroup& group) {
    ShardedState state(group.rank(), size, sharing);
    ShardedCheckpoint checkpoint(folder, {}, group, state.slices());
    const auto loaded = checkpoint.load_newest();
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->step, step);
    EXPECT_EQ(loaded->facts.at("position"), std::to_string(step * 10));
    EXPECT_THAT(loaded->skipped, skipped);
    EXPECT_TRUE(state.holds(static_cast<float>(step)));
  });
}

std::vector<std::string> names(const fs::path& folder) {
  std::vector<std::string> result;
  for (const auto& entry : fs::directory_iterator(folder)) result.push_back(entry.path().filename());
  std::sort(result.begin(), result.end());
  return result;
}

TEST(ShardedCheckpoint, IsLoadedByAWorldOfAnySizeAndStrategyBitForBit) {
  const TemporaryFolder folder;
  std::int64_t step = 0;
  for (const auto& [size, sharing] : std::vector<std::pair<int, Sharing>>{{4, Sharing::split},
                                                                          {1, Sharing::split},
                                                                          {4, Sharing::pairs_of_copies},
                                                                          {2, Sharing::whole_on_each}}) {
    save(folder.path(), size, sharing, ++step);
    expect_loads(folder.path(), 1, Sharing::split, step);
    expect_loads(folder.path(), 3, Sharing::split, step);
    expect_loads(folder.path(), 4, Sharing::pairs_of_copies, step);
    expect_loads(folder.path(), 2, Sharing::whole_on_each, step);
  }
}

TEST(ShardedCheckpoint, EachRankWritesItsPart) {
  const TemporaryFolder folder;
  save(folder.path(), 3, Sharing::split, 8);
  EXPECT_THAT(names(folder.path() / named(8)),
              ElementsAre("index.json", "part-00000-of-00003.safetensors", "part-00001-of-00003.safetensors",
                          "part-00002-of-00003.safetensors"));
}

TEST(ShardedCheckpoint, TheStoreOfOneProcessReadsItAndTheOtherWayRound) {
  const TemporaryFolder folder;
  save(folder.path(), 2, Sharing::split, 5);
  ShardedState state(0, 1, Sharing::split);
  std::vector<TensorRef> tensors;
  for (const auto& slice : state.slices())
    tensors.push_back({slice.name, slice.type, slice.shape, slice.data});
  CheckpointStore store(folder.path());
  ASSERT_TRUE(store.load_newest(tensors));
  EXPECT_TRUE(state.holds(5));
  state.set(6);
  store.save(6, tensors, {{"position", "60"}});
  expect_loads(folder.path(), 3, Sharing::split, 6);
}

TEST(ShardedCheckpoint, ASaveInTheBackgroundHasTheValuesOfItsStart) {
  const TemporaryFolder folder;
  on_ranks(2, [&](ProcessGroup& group) {
    ShardedState state(group.rank(), 2, Sharing::split);
    ShardedCheckpoint checkpoint(folder.path(), {.keep_last = 2}, group, state.slices());
    EXPECT_FALSE(checkpoint.poll());
    std::int64_t saved = 0;
    for (std::int64_t step = 1; step <= 200; ++step) {
      state.set(static_cast<float>(step));
      if (const auto outcome = checkpoint.poll()) {
        EXPECT_EQ(outcome->error, "");
        saved = outcome->step;
      }
      if (!checkpoint.saving()) checkpoint.start_save(step, {{"position", std::to_string(step * 10)}});
    }
    const auto last = checkpoint.finish();
    ASSERT_TRUE(last);
    EXPECT_GT(last->step, saved);
    EXPECT_FALSE(checkpoint.saving());
    EXPECT_FALSE(checkpoint.finish());
    const auto loaded = checkpoint.load_newest();
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->step, last->step);
    EXPECT_TRUE(state.holds(static_cast<float>(last->step)));
  });
  EXPECT_LE(names(folder.path()).size(), 2U);
}

TEST(ShardedCheckpoint, ATornOrAlteredPartIsSkippedWithItsReason) {
  const auto damage = [](const fs::path& part, int kind) {
    auto bytes = test::read_file(part);
    if (kind == 0) bytes.pop_back();
    if (kind == 1) bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    kind == 2 ? (void)fs::remove(part) : test::write_file(part, bytes);
  };
  const char* reasons[] = {" of ", "its checksum does not fit, it is damaged", "(ENOENT)"};
  for (int kind : {0, 1, 2}) {
    const TemporaryFolder folder;
    save(folder.path(), 2, Sharing::split, 1);
    save(folder.path(), 3, Sharing::split, 2);
    damage(folder.path() / named(2, 2) / "part-00001-of-00003.safetensors", kind);
    for (int size : {1, 2, 4})
      expect_loads(
          folder.path(), size, Sharing::split, 1,
          ElementsAre(AllOf(testing::StartsWith(named(2, 2) + ": "),
                            HasSubstr("part-00001-of-00003.safetensors"), HasSubstr(reasons[kind]))));
  }
}

TEST(ShardedCheckpoint, RowsMayBeWantedTwiceAndInPart) {
  const TemporaryFolder folder;
  save(folder.path(), 2, Sharing::split, 7);
  on_ranks(1, [&](ProcessGroup& group) {
    ShardedState state(0, 1, Sharing::split);
    auto slices = state.slices();
    const auto matrix = slices.at(1);
    ASSERT_EQ(matrix.name, "optimizer.m");
    std::vector<float> again(300 * 50);  // rows 350 to 649: of both parts
    TensorSlice middle = matrix;
    middle.first_row = 350;
    middle.rows = 300;
    middle.saves = false;
    middle.data = again.data();
    slices.push_back(middle);
    ShardedCheckpoint checkpoint(folder.path(), {}, group, slices);
    ASSERT_TRUE(checkpoint.load_newest());
    EXPECT_TRUE(state.holds(7));
    const auto* expected = static_cast<const float*>(matrix.data) + 350 * 50;
    EXPECT_TRUE(std::equal(again.begin(), again.end(), expected));
  });
}

TEST(ShardedCheckpoint, NothingThereIsNoErrorAndNoneUsableIsOneOnEveryRank) {
  const TemporaryFolder folder;
  const auto load = [&](ProcessGroup& group) {
    ShardedState state(group.rank(), 2, Sharing::split);
    state.set(42);
    ShardedCheckpoint checkpoint(folder.path() / "x", {}, group, state.slices());
    EXPECT_FALSE(checkpoint.load_newest());
    EXPECT_TRUE(state.holds(42));
  };
  on_ranks(2, load);
  save(folder.path() / "x", 2, Sharing::split, 3);
  fs::resize_file(folder.path() / "x" / named(3, 2) / "index.json", 20);
  EXPECT_THAT(test::errors_of_ranks(2, load), Each(AllOf(HasSubstr("none of its 1 checkpoints can be used"),
                                                         HasSubstr("index.json: damaged"))));
}

TEST(ShardedCheckpoint, AnotherModelIsNamed) {
  const TemporaryFolder folder;
  save(folder.path(), 2, Sharing::split, 3);
  EXPECT_THAT(
      test::errors_of_ranks(2,
                            [&](ProcessGroup& group) {
                              float value = 0;
                              ShardedCheckpoint checkpoint(
                                  folder.path(), {}, group,
                                  {{.name = "x", .rows = 1, .saves = group.rank() == 0, .data = &value}});
                              (void)checkpoint.load_newest();
                            }),
      Each(HasSubstr("of another model: it has no tensor 'x'")));
}

TEST(ShardedCheckpoint, RanksThatDisagreeAreToldBeforeAnythingIsWritten) {
  const TemporaryFolder folder;
  EXPECT_THAT(test::errors_of_ranks(
                  2,
                  [&](ProcessGroup& group) {
                    std::vector<float> values(20);
                    ShardedCheckpoint checkpoint(
                        folder.path(), {}, group,
                        {{.name = "w", .shape = {4, 3 + group.rank()}, .rows = 2, .data = values.data()}});
                  }),
              Each("tensor 'w': rank 0 has F32 [4, 3], rank 1 has F32 [4, 4]"));
}

TEST(ShardedCheckpoint, AShareOfTheTimeIsFromNothingToAll) {
  const TemporaryFolder folder;
  for (const double share : {-0.1, 1.5, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THAT(test::errors_of_ranks(1,
                                      [&](ProcessGroup& group) {
                                        ShardedCheckpoint(folder.path(), {.background_share = share}, group,
                                                          {});
                                      }),
                ElementsAre(HasSubstr("background_share")));
}

TEST(ShardedCheckpoint, AFullDiskIsToldOnEveryRankAndLeavesTheOldOne) {
  const TemporaryFolder folder;
  save(folder.path(), 2, Sharing::split, 1);
  fs::create_directories(folder.path() / ".tmp-step-000000000009-run-1" /
                         "x");  // of the run before: room is made
  {
    const test::WriteLimit limit(30'000);
    on_ranks(2, [&](ProcessGroup& group) {
      ShardedState state(group.rank(), 2, Sharing::split);
      ShardedCheckpoint checkpoint(folder.path(), {}, group, state.slices());
      for (std::int64_t step : {2, 3}) {
        checkpoint.start_save(step, {});
        const auto outcome = checkpoint.finish();
        ASSERT_TRUE(outcome);
        EXPECT_EQ(outcome->path, fs::path());
        EXPECT_THAT(outcome->error, AllOf(testing::StartsWith("rank 0: "), HasSubstr("(EFBIG)")));
      }
    });
  }
  EXPECT_THAT(names(folder.path()), testing::UnorderedElementsAre(named(1), ".tmp-begun-run-2"));
  expect_loads(folder.path(), 2, Sharing::split, 1);
}

/// Each rank in a folder of its own: nodes whose disks are not shared.
class OtherDisks {
 public:
  explicit OtherDisks(int other) : other_(other) {}
  const fs::path& of(const ProcessGroup& group) const {
    return group.rank() == other_ ? theirs_.path() : most_.path();
  }
  const fs::path& most() const { return most_.path(); }
  const fs::path& theirs() const { return theirs_.path(); }

 private:
  int other_;
  TemporaryFolder most_;
  TemporaryFolder theirs_;
};

TEST(ShardedCheckpoint, APartOnAnotherDiskIsNamedAndNothingIsPublished) {
  const OtherDisks disks(2);
  on_ranks(3, [&](ProcessGroup& group) {
    ShardedState state(group.rank(), 3, Sharing::split);
    ShardedCheckpoint checkpoint(disks.of(group), {}, group, state.slices());
    const auto expected = "rank 2's part part-00002-of-00003.safetensors is not in " + disks.most().string() +
                          " as rank 0 sees it: all ranks must see the same folder (a shared disk)";
    for (std::int64_t step : {5, 5, 6}) {
      const auto outcome = checkpoint.save(step, {});
      EXPECT_EQ(outcome.error, expected);
      EXPECT_EQ(outcome.path, fs::path());
    }
  });
  EXPECT_THAT(names(disks.most()), ElementsAre(".tmp-begun-run-1"));
  EXPECT_THAT(names(disks.theirs()), testing::IsEmpty());
}

TEST(ShardedCheckpoint, RanksThatDoNotSeeTheFolderAreNamedBeforeTheFirstStep) {
  const OtherDisks disks(1);
  const auto load = [&](Sharing sharing) {
    return test::errors_of_ranks(3, [&](ProcessGroup& group) {
      ShardedState state(group.rank(), 3, sharing);
      ShardedCheckpoint checkpoint(disks.of(group), {}, group, state.slices());
      EXPECT_FALSE(checkpoint.load_newest());
    });
  };
  EXPECT_THAT(load(Sharing::split),
              Each(HasSubstr(": rank 1 does not see what rank 0 writes there: all ranks must see")));
  EXPECT_THAT(load(Sharing::whole_on_each), Each("")) << "rank 0 alone saves";
  EXPECT_THAT(names(disks.most()), ElementsAre(".tmp-begun-run-2"));
}

TEST(ShardedCheckpoint, CopiesOnSeveralDisksCanBeLoaded) {
  const OtherDisks disks(1);
  save(disks.most(), 2, Sharing::split, 3);
  fs::copy(disks.most(), disks.theirs(), fs::copy_options::recursive);
  on_ranks(3, [&](ProcessGroup& group) {
    ShardedState state(group.rank(), 3, Sharing::split);
    ShardedCheckpoint checkpoint(disks.of(group), {}, group, state.slices());
    ASSERT_TRUE(checkpoint.load_newest());
    EXPECT_TRUE(state.holds(3));
  });
}

TEST(ShardedCheckpoint, RanksThatSaveDifferentStepsAreNamedAndNothingIsPublished) {
  const TemporaryFolder folder;
  save(folder.path(), 3, Sharing::split, 4);
  on_ranks(3, [&](ProcessGroup& group) {
    ShardedState state(group.rank(), 3, Sharing::split);
    state.set(7);
    ShardedCheckpoint checkpoint(folder.path(), {}, group, state.slices());
    const char* expected = "ranks 0, 2 save step 5, rank 1 saves step 6: all ranks must save the same step";
    const std::int64_t step = group.rank() == 1 ? 6 : 5;
    EXPECT_EQ(checkpoint.save(step, {}).error, expected);
    checkpoint.start_save(step, {});
    const auto outcome = checkpoint.finish();
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->error, expected);
    group.barrier()->wait();
    if (group.rank() == 0) {
      EXPECT_THAT(names(folder.path()), testing::UnorderedElementsAre(named(4), ".tmp-begun-run-2"));
    }
    group.barrier()->wait();
    EXPECT_EQ(checkpoint.save(7, {{"position", "70"}}).error, "");
  });
  expect_loads(folder.path(), 3, Sharing::split, 7);
}

// Whether they still live cannot be known from another machine: two containers may even count processes alike.
TEST(ShardedCheckpoint, D3_AnOlderRunNeitherRemovesWhatANewerOneIsWritingNorKeepsItsOwnPlace) {
  const TemporaryFolder folder;
  save(folder.path(), 1, Sharing::split, 4);
  on_ranks(1, [&](ProcessGroup& group) {
    ShardedState state(group.rank(), 1, Sharing::split);
    ShardedCheckpoint older(folder.path(), {}, group, state.slices());
    EXPECT_EQ(older.load_newest()->step, 4);
    ShardedCheckpoint newer(folder.path(), {}, group, state.slices());
    EXPECT_EQ(newer.load_newest()->step, 4);
    newer.start_save(5, {});
    EXPECT_EQ(older.save(5, {}).error, "") << "nobody has taken over yet";
    EXPECT_EQ(newer.finish()->error, "");
    EXPECT_TRUE(older.save(6, {}).superseded);
  });
  EXPECT_THAT(names(folder.path()), testing::UnorderedElementsAre(named(4), named(5, 3)));
}

TEST(ShardedCheckpoint, ASaveThatANewerRunsTookAwayIsToldAsSuperseded) {
  const TemporaryFolder folder;
  on_ranks(1, [&](ProcessGroup& group) {
    ShardedState state(group.rank(), 1, Sharing::split);
    ShardedCheckpoint older(folder.path(), {}, group, state.slices());
    EXPECT_FALSE(older.load_newest());
    ShardedCheckpoint newer(folder.path(), {}, group, state.slices());
    EXPECT_FALSE(newer.load_newest());
    older.start_save(9, {});
    EXPECT_EQ(newer.save(5, {}).error, "");
    const auto outcome = older.finish();
    EXPECT_TRUE(outcome->superseded) << outcome->error;
    EXPECT_THAT(outcome->error, HasSubstr("has taken over from this one's checkpoints and saved step 5"));
  });
  EXPECT_THAT(names(folder.path()), ElementsAre(named(5, 2)));
}

TEST(ShardedCheckpoint, ASaveThatNobodyFinishedIsNoCheckpoint) {
  const TemporaryFolder folder;
  on_ranks(2, [&](ProcessGroup& group) {
    ShardedState state(group.rank(), 2, Sharing::split);
    {
      ShardedCheckpoint checkpoint(folder.path(), {}, group, state.slices());
      checkpoint.start_save(1, {});
      EXPECT_THROW(checkpoint.start_save(2, {}), std::logic_error);
    }
    group.barrier()->wait();
    ShardedCheckpoint again(folder.path(), {}, group, state.slices());
    EXPECT_FALSE(again.load_newest());
  });
}

}  // namespace
}  // namespace muster::worker
