// Two runs over one folder: what the newer does at any moment of a save by the older one, and the other way round.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <functional>
#include <utility>

#include "muster/worker/checkpoint.hpp"
#include "tests/worker_sdk/temporary_folder.hpp"

namespace {

/// What happens in the middle of the next save: before its `calls_before`-th call that syncs or renames.
struct Interruption {
  int calls_before = 0;
  std::function<void()> what;
};
Interruption interruption;

void before_call() {
  if (!interruption.what || interruption.calls_before-- > 0) return;
  std::exchange(interruption.what, nullptr)();
}

}  // namespace

// In place of the C library's, in this program.
extern "C" int fsync(int fd) {
  before_call();
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

extern "C" int rename(const char* from, const char* to) noexcept {
  before_call();
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

namespace muster::worker {
namespace {

using test::named;
using test::TemporaryFolder;
using testing::HasSubstr;
namespace fs = std::filesystem;

/// A training whose only number is the step it has reached, times ten, plus its generation.
struct SavingRun {
  explicit SavingRun(const fs::path& folder, int keep = 3)
      : store(folder, {.keep_last = keep}), tensors{{.name = "w", .shape = {1}, .data = &value}} {}
  void save(std::int64_t step, float what) {
    value = what;
    store.save(step, tensors, {});
  }
  std::optional<LoadedCheckpoint> load() { return store.load_newest(tensors); }

  float value = 0;
  CheckpointStore store;
  std::vector<TensorRef> tensors;
};

std::vector<std::string> names(const fs::path& folder) {
  std::vector<std::string> result;
  for (const auto& entry : fs::directory_iterator(folder)) result.push_back(entry.path().filename());
  return result;
}

/// Runs `body(k)` for k = 0, 1, ... with what happens before the k-th call of the save, until a save has fewer.
void at_every_moment(const std::function<void(int)>& body) {
  int moments = 0;
  for (bool happened = true; happened; ++moments) {
    body(moments);
    happened = !interruption.what;
    interruption = {};
    ASSERT_FALSE(testing::Test::HasFailure()) << "before call " << moments << " of the save";
  }
  EXPECT_GT(moments, 5) << "part, index, folder, place, folder of all, what goes";
}

class OfTwoRuns : public testing::TestWithParam<std::int64_t> {};

TEST_P(OfTwoRuns, D3_TheNewersOnlyCheckpointOutlivesASaveOfTheOlderWheneverItComes) {
  at_every_moment([&](int moment) {
    const TemporaryFolder folder;
    SavingRun older(folder.path(), 1), newer(folder.path(), 1);
    older.save(100, 1);
    older.save(200, 1);
    ASSERT_EQ(newer.load()->step, 200);
    interruption = {moment, [&] { newer.save(GetParam(), 2); }};
    bool told = false;
    try {
      older.save(500, 1);
    } catch (const SupersededError& error) {
      told = true;
      EXPECT_THAT(error.what(), HasSubstr("has taken over from this one's checkpoints"));
    }
    if (interruption.what) return;  // its save was over before
    SavingRun next(folder.path());
    const auto loaded = next.load();
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->step, GetParam());
    EXPECT_EQ(loaded->lineage.generation, 2);
    EXPECT_EQ(next.value, 2);
    if (GetParam() != 500) {  // which is replaced by the newer's
      EXPECT_EQ(fs::exists(folder.path() / named(500)), !told) << "there if it is said to be saved";
    }
    EXPECT_THROW(older.save(501, 1), SupersededError);
    newer.save(GetParam() + 1, 2);
    EXPECT_EQ(next.load()->step, GetParam() + 1);
  });
}

INSTANTIATE_TEST_SUITE_P(Steps, OfTwoRuns, testing::Values(100, 200, 300, 500));

TEST(TwoRuns, D3_TheNewersSaveIsToldAsSavedWhateverTheOlderDoesMeanwhile) {
  at_every_moment([&](int moment) {
    const TemporaryFolder folder;
    SavingRun older(folder.path(), 2), newer(folder.path(), 2);
    for (std::int64_t step : {100, 200, 300}) older.save(step, 1);
    ASSERT_EQ(newer.load()->step, 300);
    interruption = {moment, [&] {
                      for (std::int64_t step : {400, 500, 600}) try {
                          older.save(step, 1);
                        } catch (const SupersededError&) {
                        }
                    }};
    ASSERT_NO_THROW(newer.save(350, 2));
    SavingRun next(folder.path());
    ASSERT_EQ(next.load()->step, 350);
    for (const auto& name : names(folder.path())) EXPECT_NE(name, ".tmp-begun-run-2");
  });
}

TEST(TwoRuns, OneThatIsSupersededWhileItSavesLeavesNothingOfThatSave) {
  at_every_moment([&](int moment) {
    const TemporaryFolder folder;
    SavingRun older(folder.path()), newer(folder.path());
    older.save(100, 1);
    ASSERT_TRUE(newer.load());
    interruption = {moment, [&] { newer.save(200, 2); }};
    try {
      older.save(500, 1);
    } catch (const SupersededError&) {
      EXPECT_THAT(names(folder.path()), testing::UnorderedElementsAre(named(100), named(200, 2)));
    }
  });
}

/// Too few files may be open to remove what is deeply nested.
class FewFiles {
 public:
  FewFiles() {
    ::getrlimit(RLIMIT_NOFILE, &old_);
    const int next = ::dup(0);
    ::close(next);
    const rlimit limit{static_cast<rlim_t>(next) + 8, old_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~FewFiles() { ::setrlimit(RLIMIT_NOFILE, &old_); }
  FewFiles(const FewFiles&) = delete;
  FewFiles& operator=(const FewFiles&) = delete;

 private:
  rlimit old_{};
};

TEST(TwoRuns, WhatCannotBeClearedUpIsToldOnceAndIsNoFailureOfTheSave) {
  const TemporaryFolder folder;
  SavingRun run(folder.path(), 1);
  run.save(1, 1);
  fs::path nested = ".tmp-step-000000000009-run-1";
  for (int depth = 0; depth < 40; ++depth) nested /= "x";
  fs::create_directories(folder.path() / nested);
  testing::internal::CaptureStderr();
  {
    const FewFiles few;
    EXPECT_NO_THROW(run.save(2, 1));
    EXPECT_NO_THROW(run.save(3, 1));
  }
  const auto told = testing::internal::GetCapturedStderr();
  EXPECT_THAT(told, testing::StartsWith((folder.path() / named(2)).string() +
                                        ": saved, but what is no longer needed cannot be removed: "));
  EXPECT_THAT(told, HasSubstr("(EMFILE)"));
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << told;
  EXPECT_THAT(names(folder.path()), testing::UnorderedElementsAre(named(3), nested.begin()->string()));
}

/// What it told of its steps in other files is of that number: no later run may have it again.
TEST(TwoRuns, OneThatIsOverBeforeItSavedAnythingIsNumberedOnFrom) {
  const TemporaryFolder folder;
  for (int generation = 1; generation <= 3; ++generation) {
    SavingRun run(folder.path());
    EXPECT_FALSE(run.load());
    EXPECT_THAT(names(folder.path()), testing::ElementsAre(fmt::format(".tmp-begun-run-{}", generation)));
  }
  SavingRun run(folder.path());
  EXPECT_FALSE(run.load());
  run.save(100, 1);
  EXPECT_THAT(names(folder.path()), testing::ElementsAre(named(100, 4)));
}

TEST(TwoRuns, OneOfAnOlderVersionIsLoadedAndGivesWay) {
  const TemporaryFolder folder;
  {
    SavingRun before(folder.path());
    before.save(100, 1);
    fs::rename(folder.path() / named(100), folder.path() / "step-000000000100");
  }
  SavingRun run(folder.path(), 1);
  ASSERT_EQ(run.load()->step, 100);
  EXPECT_EQ(run.load()->lineage.generation, 1);
  run.save(100, 2);
  EXPECT_THAT(names(folder.path()), testing::ElementsAre(named(100, 2)));
}

TEST(TwoRuns, ANameIsACheckpointsOnlyAsItIsWritten) {
  const auto name = step_name(42, {.generation = 3, .round = 9});
  EXPECT_EQ(name, "step-000000000042-generation-3-round-9");
  ASSERT_TRUE(named_checkpoint(name));
  EXPECT_EQ(named_checkpoint(name)->step, 42);
  EXPECT_EQ(named_checkpoint(name)->lineage->generation, 3);
  EXPECT_EQ(named_checkpoint(name)->lineage->round, 9);
  ASSERT_TRUE(named_checkpoint("step-000000000042"));
  EXPECT_FALSE(named_checkpoint("step-000000000042")->lineage);
  for (const auto* other :
       {"step-42-generation-3-round-9", "step-000000000042-generation-03-round-9",
        "step-000000000042-generation-3", "step-000000000042-round-9-generation-3",
        "step-000000000042-generation--round-", "step-000000000042-round-9",
        "step-000000000042-generation-3-round-9.new", ".tmp-step-000000000042-run-3", "step-", ""})
    EXPECT_FALSE(named_checkpoint(other)) << other;
}

}  // namespace
}  // namespace muster::worker
