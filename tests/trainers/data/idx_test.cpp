#include "trainers/data/idx.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "tests/trainers/tiny_mnist.hpp"

namespace muster::trainers {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Idx : public testing::Test {
 protected:
  std::string failure(int dimensions) {
    try {
      read_idx(file(), dimensions);
    } catch (const DataError& error) {
      return error.what();
    }
    return "no failure";
  }
  std::filesystem::path file() const { return folder_ / "file"; }
  TemporaryFolder folder_;
};

TEST_F(Idx, ReadsPlainAndGzipped) {
  const Bytes values = {1, 2, 3, 4, 5, 6};
  write_file(file(), idx_bytes({2, 3}, values));
  EXPECT_EQ(read_idx(file(), 2).values, values);
  EXPECT_EQ(read_idx(file(), 2).extents, (std::vector<std::int64_t>{2, 3}));
  write_gzipped(file(), idx_bytes({2, 3}, values));
  EXPECT_EQ(read_idx(file(), 2).values, values);
}

TEST_F(Idx, MissingFileNamesItAndTheCause) {
  EXPECT_EQ(failure(1), file().string() + ": No such file or directory");
}

TEST_F(Idx, FolderInPlaceOfAFile) {
  std::filesystem::create_directory(file());
  EXPECT_THAT(failure(1), HasSubstr(file().string() + ": this is a folder, expected a file"));
}

TEST_F(Idx, WrongMagicNamesOffsetAndExpectation) {
  write_file(file(), idx_bytes({6}, {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(failure(3), file().string() +
                            ": at offset 0: magic number 0x00000801, expected 0x00000803 (unsigned bytes, 3 "
                            "dimensions)");
}

TEST_F(Idx, EmptyAndCutHeader) {
  write_file(file(), {});
  EXPECT_THAT(failure(1), HasSubstr("at offset 0: the file ends, expected a magic number"));
  write_file(file(), {0, 0, 8, 1, 0, 0});
  EXPECT_THAT(failure(1), HasSubstr("at offset 6: the file ends, expected an extent"));
}

TEST_F(Idx, CutValues) {
  auto bytes = idx_bytes({2, 3}, {1, 2, 3, 4, 5, 6});
  bytes.pop_back();
  write_file(file(), bytes);
  EXPECT_THAT(failure(2), HasSubstr("at offset 17: the file ends, expected 6 values of 1 byte from offset 12 "
                                    "on (2 x 3 by its header)"));
}

TEST_F(Idx, MoreThanTheHeaderSays) {
  write_file(file(), idx_bytes({2}, {1, 2, 3}));
  EXPECT_THAT(failure(1), HasSubstr("at offset 10: more data, expected the end of the file"));
}

TEST_F(Idx, CutGzip) {
  TemporaryFolder other;
  Bytes values(100'000);
  Random random(1, 1);
  for (auto& value : values) value = static_cast<std::uint8_t>(random.next());
  write_gzipped(file(), idx_bytes({100'000}, values));
  std::filesystem::resize_file(file(), std::filesystem::file_size(file()) / 2);
  EXPECT_THAT(failure(1), AllOf(HasSubstr("at offset "), HasSubstr("the compressed data is cut off")));
}

TEST_F(Idx, DamagedGzip) {
  write_gzipped(file(), idx_bytes({3}, {1, 2, 3}));
  const auto size = std::filesystem::file_size(file());
  std::fstream stream(file(), std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(static_cast<std::streamoff>(size) - 6);  // in the checksum
  stream.put('\x55');
  stream.close();
  EXPECT_THAT(failure(1), HasSubstr(": at unpacked offset 0: the compressed data is damaged"));
}

TEST_F(Idx, OffsetsInAGzippedFileAreSaidToBeOfItsContents) {
  write_gzipped(file(), idx_bytes({6}, {1, 2, 3, 4, 5, 6}));
  EXPECT_THAT(failure(3), HasSubstr(": at unpacked offset 0: magic number 0x00000801, expected 0x00000803"));
  write_gzipped(file(), idx_bytes({2}, {1, 2, 3}));
  EXPECT_THAT(failure(1), HasSubstr(": at unpacked offset 10: more data"));
}

TEST_F(Idx, WhatIsNoFileIsRefusedAtOnce) {
  ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
  EXPECT_EQ(failure(1), file().string() + ": this is a named pipe (FIFO), expected a file");
  std::filesystem::remove(file());
  std::filesystem::create_symlink("/dev/zero", file());
  EXPECT_EQ(failure(1), file().string() + ": this is a character device, expected a file");
}

TEST_F(Idx, HugeClaimIsRefusedWithoutAllocating) {
  write_file(file(), idx_bytes({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, {}));
  EXPECT_THAT(failure(3), HasSubstr("at offset 4: extent 4294967295, expected"));
  write_file(file(), idx_bytes({1 << 30}, {1}));
  EXPECT_THAT(failure(1), HasSubstr("the file ends"));
  write_file(file(), idx_bytes({0}, {}));
  EXPECT_THAT(failure(1), HasSubstr("extent 0"));
}

}  // namespace
}  // namespace muster::trainers
