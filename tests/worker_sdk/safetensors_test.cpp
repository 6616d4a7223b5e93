#include "muster/worker/safetensors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <cstring>

#include "tests/worker_sdk/temporary_folder.hpp"

namespace muster::worker {
namespace {

using test::TemporaryFolder;
using testing::HasSubstr;

struct Sample {
  std::vector<float> weights{1.5F, -2.0F, 0.25F, 3.0F, 1e-30F, 7.0F};
  std::vector<std::uint8_t> flags{1, 0, 255};
  std::vector<std::int64_t> step{-5};
  std::vector<TensorRef> tensors() {
    return {{.name = "flags", .type = ElementType::u8, .shape = {3}, .data = flags.data()},
            {.name = "fc1.weight", .type = ElementType::f32, .shape = {2, 3}, .data = weights.data()},
            {.name = "step", .type = ElementType::i64, .shape = {}, .data = step.data()}};
  }
};

TEST(Safetensors, WhatIsWrittenIsReadBack) {
  const TemporaryFolder folder;
  Sample sample;
  write_safetensors(folder.path() / "a.safetensors", sample.tensors(), {{"format", "pt"}, {"epoch", "3"}});
  const auto file = read_safetensors(folder.path() / "a.safetensors");
  EXPECT_EQ(file.metadata.at("epoch"), "3");
  ASSERT_EQ(file.tensors.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto expected = sample.tensors()[i];
    EXPECT_EQ(file.tensors[i].name, expected.name);
    EXPECT_EQ(file.tensors[i].shape, expected.shape);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(file.tensors[i].data) % size_of(expected.type), 0U);
    EXPECT_EQ(std::memcmp(file.tensors[i].data, expected.data, expected.bytes()), 0);
  }
}

TEST(Safetensors, SameTensorsGiveTheSameBytes) {
  const TemporaryFolder folder;
  Sample sample;
  write_safetensors(folder.path() / "a", sample.tensors(), {{"x", "1"}});
  write_safetensors(folder.path() / "b", sample.tensors(), {{"x", "1"}});
  EXPECT_EQ(test::read_file(folder.path() / "a"), test::read_file(folder.path() / "b"));
}

TEST(Safetensors, AnOlderFileIsReplacedAndNothingIsLeftBeside) {
  const TemporaryFolder folder;
  Sample sample;
  test::write_file(folder.path() / "a", "old");
  write_safetensors(folder.path() / "a", sample.tensors());
  EXPECT_EQ(read_safetensors(folder.path() / "a").tensors.size(), 3U);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(Safetensors, ALinkStaysAndItsTargetIsWritten) {
  const test::TemporaryFolder folder;
  std::ofstream(folder.path() / "target") << "old";
  std::filesystem::create_symlink("target", folder.path() / "link");
  write_safetensors(folder.path() / "link", {});
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path() / "link"));
  EXPECT_TRUE(read_safetensors(folder.path() / "target").tensors.empty());
}

TEST(Safetensors, NoTensorsAtAll) {
  const TemporaryFolder folder;
  write_safetensors(folder.path() / "a", {});
  EXPECT_TRUE(read_safetensors(folder.path() / "a").tensors.empty());
}

TEST(Safetensors, ErrorsNameThePath) {
  const TemporaryFolder folder;
  const auto message = [](auto call) -> std::string {
    try {
      call();
    } catch (const CheckpointError& error) {
      return error.what();
    }
    return "no error";
  };
  const auto absent = folder.path() / "absent" / "a";
  Sample sample;
  EXPECT_THAT(message([&] { write_safetensors(absent, sample.tensors()); }), HasSubstr("(ENOENT)"));
  EXPECT_EQ(message([&] { read_safetensors(absent); }),
            absent.string() + ": No such file or directory (ENOENT)");
  EXPECT_THAT(message([&] { read_safetensors(folder.path()); }), HasSubstr("not a regular file"));
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(message([&] { read_safetensors(pipe); }), pipe.string() + ": not a regular file");
  test::write_file(folder.path() / "short", "abc");
  EXPECT_THAT(message([&] { read_safetensors(folder.path() / "short"); }), HasSubstr("/short: offset 0: "));
  write_safetensors(folder.path() / "cut", sample.tensors());
  std::filesystem::resize_file(folder.path() / "cut", std::filesystem::file_size(folder.path() / "cut") - 1);
  EXPECT_THAT(message([&] { read_safetensors(folder.path() / "cut"); }), HasSubstr("/cut: offset 8: "));
}

TEST(Safetensors, AnImpossibleShapeIsRefused) {
  const TemporaryFolder folder;
  float value = 0;
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{-2, 3}, {std::int64_t{1} << 62, std::int64_t{1} << 62}, {0, -1}}) {
    const std::vector<TensorRef> tensors{{.name = "w", .shape = shape, .data = &value}};
    EXPECT_THROW(write_safetensors(folder.path() / "a", tensors), std::invalid_argument);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Safetensors, ADanglingLinkStaysAndItsTargetIsMade) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "disk");
  std::filesystem::create_symlink("disk/b", folder.path() / "a");
  std::filesystem::create_symlink("a", folder.path() / "first");
  Sample sample;
  write_safetensors(folder.path() / "first", sample.tensors());
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path() / "first"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path() / "a"));
  EXPECT_EQ(read_safetensors(folder.path() / "disk/b").tensors.size(), sample.tensors().size());
}

TEST(Safetensors, WhatIsNoFileIsNotReplaced) {
  const TemporaryFolder folder;
  Sample sample;
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::filesystem::create_symlink(pipe, folder.path() / "link");
  std::filesystem::create_symlink("loop", folder.path() / "loop");
  std::filesystem::create_directory(folder.path() / "folder");
  const auto refused = [&](const char* name) -> std::string {
    try {
      write_safetensors(folder.path() / name, sample.tensors());
      return "written";
    } catch (const CheckpointError& error) {
      return std::string(error.what()).substr(folder.path().string().size());
    }
  };
  EXPECT_EQ(refused("pipe"), "/pipe: not a regular file");
  EXPECT_EQ(refused("link"), "/link: not a regular file");
  EXPECT_EQ(refused("folder"), "/folder: Is a directory (EISDIR)");
  EXPECT_THAT(refused("loop"), HasSubstr("(ELOOP)"));
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

/// Reads the file with nothing but the format's description: struct for the length, json for the header.
constexpr const char* python_reader = R"(
import json, struct, sys
raw = open(sys.argv[1], 'rb').read()
(length,) = struct.unpack('<Q', raw[:8])
assert (8 + length) % 8 == 0
header = json.loads(raw[8:8 + length].decode('utf-8'))
data = raw[8 + length:]
assert header.pop('__metadata__') == {'format': 'pt', 'who': 'Zoë'}
assert list(header) == ['flags', 'fc1.weight', 'step']
ends = sorted(t['data_offsets'] for t in header.values())
assert ends[0][0] == 0 and ends[-1][1] == len(data)
assert all(a[1] == b[0] for a, b in zip(ends, ends[1:]))
def read(name, code):
    begin, end = header[name]['data_offsets']
    return struct.unpack('<' + code, data[begin:end])
assert header['fc1.weight']['dtype'] == 'F32' and header['fc1.weight']['shape'] == [2, 3]
assert read('fc1.weight', '6f')[:4] == (1.5, -2.0, 0.25, 3.0)
assert read('flags', '3B') == (1, 0, 255)
assert header['step']['shape'] == [] and read('step', 'q') == (-5,)
)";

TEST(Safetensors, PythonReadsIt) {
  if (std::system("/usr/bin/python3 -c '' 2>/dev/null") != 0) GTEST_SKIP() << "no /usr/bin/python3";
  const TemporaryFolder folder;
  Sample sample;
  write_safetensors(folder.path() / "a.safetensors", sample.tensors(), {{"format", "pt"}, {"who", "Zoë"}});
  test::write_file(folder.path() / "read.py", python_reader);
  const auto command = "/usr/bin/python3 " + (folder.path() / "read.py").string() + " " +
                       (folder.path() / "a.safetensors").string();
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace muster::worker
