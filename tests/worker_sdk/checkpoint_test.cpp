#include "muster/worker/checkpoint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>

#include "tests/worker_sdk/temporary_folder.hpp"
#include "tests/worker_sdk/write_limit.hpp"
#include "worker_sdk/src/checkpoint_index.hpp"
#include "worker_sdk/src/safetensors_file.hpp"

namespace muster::worker {
namespace {

using test::named;
using test::TemporaryFolder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;
namespace fs = std::filesystem;

/// A model whose values all tell the step at which they were saved.
struct Model {
  explicit Model(std::size_t elements = 64) : weights(elements), moments(elements) {}
  void set(float value) {
    std::fill(weights.begin(), weights.end(), value);
    std::fill(moments.begin(), moments.end(), -value);
  }
  bool holds(float value) const {
    return std::all_of(weights.begin(), weights.end(), [&](float x) { return x == value; }) &&
           std::all_of(moments.begin(), moments.end(), [&](float x) { return x == -value; });
  }
  std::vector<TensorRef> tensors() {
    return {{.name = "w", .shape = {static_cast<std::int64_t>(weights.size())}, .data = weights.data()},
            {.name = "m", .shape = {static_cast<std::int64_t>(moments.size())}, .data = moments.data()}};
  }
  std::vector<float> weights;
  std::vector<float> moments;
};

void save(CheckpointStore& store, Model& model, std::int64_t step) {
  model.set(static_cast<float>(step));
  store.save(step, model.tensors(), {{"position", std::to_string(step * 10)}});
}

std::vector<std::string> names(const fs::path& folder) {
  std::vector<std::string> result;
  for (const auto& entry : fs::directory_iterator(folder)) result.push_back(entry.path().filename());
  return result;
}

std::string message(auto call) {
  try {
    call();
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return "no error";
}

fs::path part_of(const fs::path& folder, const std::string& step) {
  return folder / step / "part-00000-of-00001.safetensors";
}

TEST(Checkpoint, NothingThereIsNoError) {
  const TemporaryFolder folder;
  Model model;
  EXPECT_FALSE(CheckpointStore(folder.path()).load_newest(model.tensors()));
  EXPECT_FALSE(CheckpointStore(folder.path() / "absent").load_newest(model.tensors()));
}

TEST(Checkpoint, TheNewestIsLoadedWithItsFacts) {
  const TemporaryFolder folder;
  CheckpointStore store(folder.path() / "a" / "b");
  Model model;
  save(store, model, 9);
  save(store, model, 10);
  model.set(0);
  const auto loaded = store.load_newest(model.tensors());
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->step, 10);
  EXPECT_EQ(loaded->facts.at("position"), "100");
  EXPECT_EQ(loaded->path, folder.path() / "a" / "b" / named(10));
  EXPECT_TRUE(loaded->skipped.empty());
  EXPECT_TRUE(model.holds(10));
}

TEST(Checkpoint, OnlyTheLastAreKept) {
  const TemporaryFolder folder;
  CheckpointStore store(folder.path(), {.keep_last = 2});
  Model model;
  for (std::int64_t step : {1, 2, 3, 4}) save(store, model, step);
  EXPECT_THAT(names(folder.path()), UnorderedElementsAre(named(3), named(4)));
  EXPECT_THROW(CheckpointStore(folder.path(), {.keep_last = 0}), std::invalid_argument);
}

TEST(Checkpoint, ASaveNeverPrunesItself) {
  const TemporaryFolder folder;
  CheckpointStore store(folder.path(), {.keep_last = 1});
  Model model;
  save(store, model, 400);
  fs::resize_file(part_of(folder.path(), named(400)), 10);
  save(store, model, 250);
  EXPECT_EQ(store.load_newest(model.tensors())->step, 250);
}

TEST(Checkpoint, TheSameStepAgainReplacesIt) {
  const TemporaryFolder folder;
  CheckpointStore store(folder.path());
  Model model;
  save(store, model, 5);
  model.set(77);
  store.save(5, model.tensors(), {});
  model.set(0);
  ASSERT_TRUE(store.load_newest(model.tensors()));
  EXPECT_TRUE(model.holds(77));
  EXPECT_THAT(names(folder.path()), ElementsAre(named(5)));
}

TEST(Checkpoint, WhatOlderRunsLeftGoesOnceANewerOneHasSavedAndWhatANewerOneWritesStays) {
  const TemporaryFolder folder;
  for (const auto* name : {".tmp-step-000000000001-run-1", ".tmp-begun-run-1", ".tmp-step-000000000002-run-2",
                           ".tmp-mark-0123456789abcdef-run-1"})
    fs::create_directories(folder.path() / name / "x");
  CheckpointStore store(folder.path());
  Model model;
  EXPECT_FALSE(store.load_newest(model.tensors())) << "a leftover is not a checkpoint";
  EXPECT_THAT(names(folder.path()), testing::SizeIs(5)) << "its own note, and who writes there may be alive";
  const auto newer = folder.path() / ".tmp-step-000000000009-run-4";
  fs::create_directories(newer);
  save(store, model, 4);
  EXPECT_THAT(names(folder.path()), UnorderedElementsAre(named(4, 3), newer.filename().string()));
}

// Until one of them has saved, nothing else tells them apart: a daemon that lost its memory counts its rounds anew.
TEST(Checkpoint, D3_OfTwoRunsThatBeganBeforeAnybodySavedTheLaterIsNewerWhateverItsRound) {
  const TemporaryFolder folder;
  Model model;
  CheckpointStore cut_off(folder.path() / "ckpt", {.round = 5});
  EXPECT_FALSE(cut_off.load_newest(model.tensors()));
  CheckpointStore next(folder.path() / "ckpt", {.round = 1});
  EXPECT_FALSE(next.load_newest(model.tensors()));
  next.save(7, model.tensors(), {});
  EXPECT_THAT([&] { cut_off.save(90, model.tensors(), {}); },
              testing::ThrowsMessage<SupersededError>(testing::HasSubstr("and saved step 7; what round 5")));
  EXPECT_EQ(CheckpointStore(folder.path() / "ckpt").load_newest(model.tensors())->step, 7);
}

TEST(Checkpoint, OtherNamesAreLeftAlone) {
  const TemporaryFolder folder;
  CheckpointStore store(folder.path(), {.keep_last = 1});
  Model model;
  for (auto name : {"step-7", "step-000000000009x", "notes", "step-00000000000000009", ".tmp-mine"})
    fs::create_directory(folder.path() / name);
  save(store, model, 1);
  EXPECT_THAT(names(folder.path()), UnorderedElementsAre("step-7", "step-000000000009x", "notes", ".tmp-mine",
                                                         "step-00000000000000009", named(1)));
  EXPECT_EQ(store.load_newest(model.tensors())->step, 1);
}

TEST(Checkpoint, ATruncatedOneIsSkippedAndNamed) {
  const TemporaryFolder folder;
  CheckpointStore store(folder.path());
  Model model;
  save(store, model, 200);
  save(store, model, 400);
  const auto part = part_of(folder.path(), named(400));
  const auto whole = fs::file_size(part);
  fs::resize_file(part, 123);
  const auto loaded = store.load_newest(model.tensors());
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->step, 200);
  EXPECT_TRUE(model.holds(200));
  EXPECT_THAT(loaded->skipped, ElementsAre(named(400) + ": part-00000-of-00001.safetensors has 123 of " +
                                           std::to_string(whole) + " bytes"));
}

TEST(Checkpoint, AMissingFileIsSkippedAndNamed) {
  for (const char* file : {"index.json", "part-00000-of-00001.safetensors"}) {
    const TemporaryFolder folder;
    CheckpointStore store(folder.path());
    Model model;
    save(store, model, 1);
    save(store, model, 2);
    fs::remove(folder.path() / named(2) / file);
    const auto loaded = store.load_newest(model.tensors());
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->step, 1);
    EXPECT_THAT(loaded->skipped, ElementsAre(testing::AllOf(HasSubstr(file), HasSubstr("ENOENT"))));
  }
}

TEST(Checkpoint, AFlippedByteAnywhereIsSeen) {
  const TemporaryFolder folder;
  CheckpointStore store(folder.path());
  Model model(8);
  save(store, model, 1);
  save(store, model, 2);
  for (const auto& path : {part_of(folder.path(), named(2)), folder.path() / named(2) / "index.json"}) {
    const auto whole = test::read_file(path);
    for (std::size_t i = 0; i < whole.size(); i += 7) {  // hits every region: lengths, headers, data
      auto damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
      test::write_file(path, damaged);
      const auto loaded = store.load_newest(model.tensors());
      ASSERT_TRUE(loaded);
      ASSERT_EQ(loaded->step, 1) << path << " byte " << i;
      ASSERT_TRUE(model.holds(1));
    }
    test::write_file(path, whole);
  }
  EXPECT_EQ(store.load_newest(model.tensors())->step, 2);
}

TEST(Checkpoint, ALeftoverOfAnotherModelIsSkippedAndNamed) {
  const TemporaryFolder folder;
  CheckpointStore store(folder.path());
  Model small(8);
  Model large(9);
  save(store, small, 1);
  save(store, large, 2);
  const auto loaded = store.load_newest(small.tensors());
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->step, 1);
  EXPECT_THAT(loaded->skipped,
              ElementsAre(named(2) + ": of another model: tensor 'w' has shape [9], here [8]"));
}

TEST(Checkpoint, NoneUsableIsAnErrorAndNothingIsTouched) {
  const TemporaryFolder folder;
  CheckpointStore store(folder.path());
  Model model;
  Model other(3);
  save(store, model, 1);
  save(store, other, 2);
  fs::resize_file(part_of(folder.path(), named(1)), 0);
  model.set(42);
  const auto before = names(folder.path());
  const auto error = message([&] { (void)store.load_newest(model.tensors()); });
  EXPECT_THAT(error, HasSubstr("none of its 2 checkpoints can be used"));
  EXPECT_THAT(error, HasSubstr(named(1) + ": part-00000-of-00001.safetensors has 0 of"));
  EXPECT_THAT(error, HasSubstr(named(2) + ": of another model"));
  EXPECT_EQ(names(folder.path()), before);
  EXPECT_TRUE(model.holds(42)) << "the caller's memory is only written from a whole checkpoint";
}

TEST(Checkpoint, AReasonThatSeveralHaveIsGivenOnceAfterTheAdvice) {
  const TemporaryFolder folder;
  CheckpointStore store(folder.path(), {.keep_last = 5});
  Model model;
  Model other(3);
  save(store, other, 1);
  save(store, other, 2);
  save(store, model, 3);
  fs::resize_file(part_of(folder.path(), named(3)), 0);
  auto error = message([&] { (void)store.load_newest(model.tensors()); });
  EXPECT_THAT(error, testing::StartsWith(
                         folder.path().string() +
                         ": none of its 3 checkpoints can be used; move the folder away to "
                         "start from the beginning (step-000000000003-generation-1-round-0: part-00000-of-"));
  EXPECT_THAT(error, testing::EndsWith("; step-000000000002-generation-1-round-0, "
                                       "step-000000000001-generation-1-round-0: of another model: "
                                       "tensor 'w' has shape [3], here [64])"));
  save(store, other, 4);
  save(store, other, 5);
  EXPECT_THAT(message([&] { (void)store.load_newest(model.tensors()); }),
              HasSubstr("(step-000000000005-generation-1-round-0 to step-000000000001-generation-1-round-0, "
                        "4 of them: of another model: "));
}

TEST(Checkpoint, PartsOfSeveralWritersAreOneCheckpoint) {
  const TemporaryFolder folder;
  Model model;
  model.set(6);
  const auto tensors = model.tensors();
  const auto place = folder.path() / named(6);
  fs::create_directory(place);
  CheckpointIndex index{.step = 6, .facts = {}, .parts = {}, .tensors = {}};
  for (std::size_t part : {0UL, 1UL}) {
    FileWriter file(place / part_name(part, 2));
    write_tensors(file, std::span(tensors).subspan(part, 1), {});
    file.commit();
    index.parts.push_back({part_name(part, 2), file.size_bytes(), file.checksum()});
    index.tensors.push_back(tensor_in_part(tensors[part], part));
  }
  test::write_file(place / "index.json", encode_index(index));
  model.set(0);
  CheckpointStore store(folder.path());
  ASSERT_EQ(store.load_newest(tensors)->step, 6);
  EXPECT_TRUE(model.holds(6));

  std::swap(index.tensors[0].slices, index.tensors[1].slices);
  test::write_file(place / "index.json", encode_index(index));
  EXPECT_THAT(message([&] { (void)store.load_newest(tensors); }),
              HasSubstr("does not hold what index.json says"));
}

TEST(Checkpoint, AnImpossibleShapeIsRefusedBeforeAnythingIsWritten) {
  const TemporaryFolder folder;
  CheckpointStore store(folder.path() / "x");
  float value = 0;
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{-2, 3}, {std::int64_t{1} << 62, std::int64_t{1} << 62}}) {
    const std::vector<TensorRef> tensors{{.name = "w", .shape = shape, .data = &value}};
    try {
      store.save(1, tensors, {});
      ADD_FAILURE() << "saved";
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), testing::StartsWith("tensor 'w' has an impossible shape: ["));
    }
  }
  EXPECT_FALSE(fs::exists(folder.path() / "x"));
}

TEST(Checkpoint, AnElementTypeThatDoesNotExistIsRefused) {
  const TemporaryFolder folder;
  CheckpointStore store(folder.path());
  float value = 0;
  const std::vector<TensorRef> tensors{
      {.name = "w", .type = static_cast<ElementType>(99), .shape = {1}, .data = &value}};
  EXPECT_THROW(store.save(1, tensors, {}), std::invalid_argument);
}

TEST(Checkpoint, AFolderThatIsADanglingLinkIsNamedWithItsTarget) {
  const TemporaryFolder folder;
  fs::create_symlink("/nonexistent/disk", folder.path() / "x");
  Model model;
  CheckpointStore store(folder.path() / "x");
  EXPECT_EQ(message([&] { store.save(1, model.tensors(), {}); }),
            (folder.path() / "x").string() + ": a link to /nonexistent/disk, which is not there");
}

TEST(Checkpoint, ErrorsNameThePathAndTheErrno) {
  const TemporaryFolder folder;
  test::write_file(folder.path() / "file", "");
  Model model;
  CheckpointStore store(folder.path() / "file");
  EXPECT_THAT(message([&] { store.save(1, model.tensors(), {}); }), HasSubstr("/file: "));
  EXPECT_THAT(message([&] { (void)store.load_newest(model.tensors()); }), HasSubstr("(ENOTDIR)"));
  EXPECT_THAT(message([&] { CheckpointStore(folder.path()).save(-1, model.tensors(), {}); }),
              HasSubstr("step -1"));
}

TEST(Checkpoint, AFullDiskLeavesTheOldCheckpointAndNoLitter) {
  const TemporaryFolder folder;
  CheckpointStore store(folder.path());
  Model model(10'000);
  save(store, model, 1);
  {
    const test::WriteLimit limit(30'000);
    EXPECT_THAT(message([&] { save(store, model, 2); }), HasSubstr("part-00000-of-00001.safetensors: "));
    EXPECT_THAT(message([&] { save(store, model, 3); }), HasSubstr("(EFBIG)"));
  }
  EXPECT_THAT(names(folder.path()), ElementsAre(named(1)));
  ASSERT_EQ(store.load_newest(model.tensors())->step, 1);
  EXPECT_TRUE(model.holds(1));
  save(store, model, 4);
  EXPECT_EQ(store.load_newest(model.tensors())->step, 4);
}

TEST(Checkpoint, ARunThatWasSupersededPublishesNothingMore) {
  const TemporaryFolder folder;
  Model model(3);
  CheckpointStore first(folder.path(), {.round = 8});
  EXPECT_FALSE(first.load_newest(model.tensors()));
  save(first, model, 1'460);
  CheckpointStore second(folder.path(), {.round = 9});
  ASSERT_EQ(second.load_newest(model.tensors())->step, 1'460);
  save(first, model, 1'520);  // nobody has gone on and saved yet
  save(second, model, 1'487);
  EXPECT_THROW(save(first, model, 1'560), SupersededError);
  EXPECT_THROW(save(first, model, 1'487), SupersededError) << "also in its place";
  EXPECT_THAT(
      message([&] { save(first, model, 1'560); }),
      HasSubstr("round 9 has taken over from this one's checkpoints and saved step 1487; what round 8 "
                "computes counts no longer"));
  CheckpointStore third(folder.path(), {.round = 11});
  const auto loaded = third.load_newest(model.tensors());
  EXPECT_EQ(loaded->step, 1'487) << "the newest of the newest run, though 1520 is there";
  EXPECT_EQ(loaded->lineage.round, 9);
  EXPECT_EQ(loaded->lineage.generation, 2);
  save(third, model, 1'520);  // over that of the superseded one
  EXPECT_EQ(CheckpointStore(folder.path()).load_newest(model.tensors())->lineage.round, 11);
}

TEST(Checkpoint, OfTwoRunsThatBeganFromTheSameTheLaterRoundCounts) {
  const TemporaryFolder folder;
  Model model(3);
  CheckpointStore first(folder.path(), {.round = 1}), second(folder.path(), {.round = 2});
  EXPECT_FALSE(first.load_newest(model.tensors()));
  EXPECT_FALSE(second.load_newest(model.tensors()));
  save(first, model, 50);
  save(second, model, 30);
  EXPECT_THROW(save(first, model, 60), SupersededError);
  EXPECT_EQ(CheckpointStore(folder.path()).load_newest(model.tensors())->step, 30);
}

/// Saves step after step until it is killed.
[[noreturn]] void save_forever(const fs::path& folder, std::int64_t first, int started) {
  CheckpointStore store(folder, {.keep_last = 2});
  Model model(5'000);
  for (auto step = first;; ++step) {
    save(store, model, step);
    if (step == first && ::write(started, "x", 1) != 1) ::_exit(3);
  }
}

TEST(Checkpoint, AWriterKilledAtAnyMomentLeavesAWholeNewest) {
  const TemporaryFolder folder;
  std::mt19937 random(7);
  Model model(5'000);
  std::int64_t last = 0;
  for (int attempt = 0; attempt < 50; ++attempt) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t writer = ::fork();
    if (writer == 0) save_forever(folder.path(), last + 1, pipe[1]);
    ::close(pipe[1]);
    char byte = 0;
    ASSERT_EQ(::read(pipe[0], &byte, 1), 1);
    ::usleep(std::uniform_int_distribution<useconds_t>(0, 8'000)(random));  // the moment itself is the input
    ASSERT_EQ(::kill(writer, SIGKILL), 0);
    ASSERT_EQ(::waitpid(writer, nullptr, 0), writer);
    ::close(pipe[0]);

    const auto loaded = CheckpointStore(folder.path()).load_newest(model.tensors());
    ASSERT_TRUE(loaded);
    EXPECT_THAT(loaded->skipped, testing::IsEmpty());
    EXPECT_GT(loaded->step, last);
    EXPECT_TRUE(model.holds(static_cast<float>(loaded->step)));
    EXPECT_EQ(loaded->facts.at("position"), std::to_string(loaded->step * 10));
    last = loaded->step;
  }
  CheckpointStore store(folder.path(), {.keep_last = 1});
  save(store, model, last + 1);
  EXPECT_EQ(names(folder.path()).size(), 1U) << "what the killed writers left is gone";
}

}  // namespace
}  // namespace muster::worker
