#include "worker_sdk/src/checkpoint_tool.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>

#include "muster/worker/safetensors.hpp"
#include "tests/worker_sdk/ranks.hpp"
#include "tests/worker_sdk/sharded_state.hpp"
#include "tests/worker_sdk/temporary_folder.hpp"

namespace muster::worker {
namespace {

using test::named;
using test::ShardedState;
using test::Sharing;
using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

class CheckpointTool : public testing::Test {
 protected:
  CheckpointTool() {
    for (std::int64_t step : {7, 8}) {
      const auto errors = test::errors_of_ranks(2, [&](ProcessGroup& group) {
        ShardedState state(group.rank(), 2, Sharing::split);
        state.set(static_cast<float>(step));
        ShardedCheckpoint checkpoint(checkpoints(), {}, group, state.slices());
        EXPECT_EQ(checkpoint.save(step, {{"epoch", "3"}}).error, "");
      });
      EXPECT_THAT(errors, testing::Each(""));
    }
  }
  fs::path checkpoints() const { return folder_.path() / "checkpoints"; }
  void damage_newest() const {
    const auto part = checkpoints() / named(8, 2) / "part-00001-of-00002.safetensors";
    fs::resize_file(part, fs::file_size(part) - 1);
  }
  /// Exit code of the program itself.
  int run(const std::string& arguments) const {
    const auto command = std::string(MUSTER_BIN_DIR) + "/muster_checkpoint " + arguments + " >" +
                         (folder_.path() / "out").string() + " 2>" + (folder_.path() / "err").string();
    return WEXITSTATUS(std::system(command.c_str()));
  }
  std::string out() const { return test::read_file(folder_.path() / "out"); }
  std::string err() const { return test::read_file(folder_.path() / "err"); }

  test::TemporaryFolder folder_;
};

TEST_F(CheckpointTool, InspectTellsWhatIsInTheNewest) {
  EXPECT_THAT(inspect_checkpoint(checkpoints()),
              AllOf(HasSubstr("step 8, 2 parts, 19"), HasSubstr("fact    epoch = 3\n"),
                    HasSubstr("tensor  model.weight  F32 [7, 3]  part 0 rows 0-3, part 1 rows 4-6\n"),
                    HasSubstr("tensor  count  F32 []  part 0\n")));
  EXPECT_THAT(inspect_checkpoint(checkpoints() / named(7)), HasSubstr("step 7"));
}

TEST_F(CheckpointTool, VerifyNamesTheDamagedOne) {
  EXPECT_EQ(run("verify " + checkpoints().string()), 0);
  damage_newest();
  EXPECT_EQ(run("verify " + checkpoints().string()), 1);
  EXPECT_THAT(out(), AllOf(HasSubstr(named(8, 2) + ": NOT USABLE: part-00001-of-00002.safetensors has "),
                           HasSubstr(named(7) + ": whole, 2 parts, ")));
}

TEST_F(CheckpointTool, ConsolidateMakesOneFileOfTheNewestWhole) {
  damage_newest();
  const auto file = folder_.path() / "all.safetensors";
  ASSERT_EQ(run("consolidate " + checkpoints().string() + " " + file.string()), 0) << err();
  EXPECT_THAT(err(), HasSubstr("skipped " + (checkpoints() / named(8, 2)).string() + ": part-00001"));
  ShardedState expected(0, 1, Sharing::split);
  expected.set(7);
  const auto read = read_safetensors(file);
  ASSERT_EQ(read.tensors.size(), expected.slices().size());
  for (const auto& slice : expected.slices()) {
    const auto found = std::find_if(read.tensors.begin(), read.tensors.end(),
                                    [&](const TensorRef& tensor) { return tensor.name == slice.name; });
    ASSERT_NE(found, read.tensors.end());
    EXPECT_EQ(found->shape, slice.shape);
    EXPECT_EQ(std::memcmp(found->data, slice.data, slice.bytes()), 0) << slice.name;
  }
}

TEST_F(CheckpointTool, ConsolidateTakesAPrefixAndCutsItOff) {
  const auto file = folder_.path() / "model.safetensors";
  EXPECT_EQ(consolidate_checkpoint(checkpoints(), file, "model.").tensors, 1U);
  EXPECT_EQ(read_safetensors(file).tensors.at(0).name, "weight");
  EXPECT_EQ(run("consolidate --prefix=x. " + checkpoints().string() + " " + file.string()), 1);
  EXPECT_THAT(err(), HasSubstr("no tensor's name begins with 'x.'"));
}

TEST_F(CheckpointTool, ConsolidateReplacesNeitherADeviceNorAPartOfACheckpoint) {
  const auto part = checkpoints() / named(8, 2) / "part-00001-of-00002.safetensors";
  const auto before = test::read_file(part);
  fs::create_symlink(part, folder_.path() / "link");
  for (const auto& inside : {part, folder_.path() / "link", part.parent_path() / "all.safetensors",
                             checkpoints() / "." / named(7) / "index.json"}) {
    EXPECT_EQ(run("consolidate " + checkpoints().string() + " " + inside.string()), 1) << inside;
    EXPECT_THAT(err(), AllOf(HasSubstr(inside.string() + ": lies in the checkpoint "),
                             HasSubstr("; expected a file outside of checkpoints\n")));
  }
  EXPECT_THROW(
      {
        const auto here = fs::current_path();
        fs::current_path(part.parent_path());
        try {
          consolidate_checkpoint(checkpoints(), "all.safetensors", "");
        } catch (...) {
          fs::current_path(here);
          throw;
        }
        fs::current_path(here);
      },
      CheckpointError)
      << "a name alone, in the checkpoint's folder";
  EXPECT_FALSE(fs::exists(part.parent_path() / "all.safetensors"));
  EXPECT_EQ(test::read_file(part), before);
  EXPECT_EQ(run("verify " + checkpoints().string()), 0);
  const auto pipe = folder_.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(run("consolidate " + checkpoints().string() + " " + pipe.string()), 1);
  EXPECT_EQ(err(), "muster_checkpoint: " + pipe.string() + ": not a regular file\n");
  EXPECT_TRUE(fs::is_fifo(pipe));
}

/// A reader that knows the format alone: Python's safetensors is not in Debian 12.
TEST_F(CheckpointTool, PythonReadsWhatConsolidateWrote) {
  const auto file = folder_.path() / "all.safetensors";
  consolidate_checkpoint(checkpoints(), file, "");
  test::write_file(folder_.path() / "read.py", R"(
import json, struct, sys
data = open(sys.argv[1], "rb").read()
(length,) = struct.unpack_from("<Q", data)
header = json.loads(data[8:8 + length])
assert header.pop("__metadata__") == {"format": "pt"}, header
assert set(header) == {"model.weight", "optimizer.m", "bias", "count"}, header
ends = 0
for number, name in enumerate(["model.weight", "optimizer.m", "bias", "count"]):
    begin, end = header[name]["data_offsets"]
    values = struct.unpack_from(f"<{(end - begin) // 4}f", data, 8 + length + begin)
    assert values == tuple(float(number * 100000 + i + 8) for i in range(len(values))), name
    ends = max(ends, end)
assert header["optimizer.m"]["shape"] == [1000, 50] and header["count"]["shape"] == []
assert 8 + length + ends == len(data)
)");
  EXPECT_EQ(std::system(
                ("/usr/bin/python3 " + (folder_.path() / "read.py").string() + " " + file.string()).c_str()),
            0);
}

TEST_F(CheckpointTool, SaysWhatIsMissing) {
  EXPECT_EQ(run("verify /nonexistent"), 1);
  EXPECT_THAT(err(), HasSubstr("/nonexistent: no checkpoint; expected a folder with an index.json"));
  EXPECT_EQ(run("verify"), 2);
  EXPECT_EQ(run("frobnicate x"), 2);
  EXPECT_EQ(run("--help"), 0);
  EXPECT_THAT(out(), AllOf(HasSubstr("inspect"), HasSubstr("verify"), HasSubstr("consolidate")));
}

}  // namespace
}  // namespace muster::worker
