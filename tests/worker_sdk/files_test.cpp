#include "worker_sdk/src/files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "muster/worker/checkpoint.hpp"
#include "tests/worker_sdk/temporary_folder.hpp"
#include "tests/worker_sdk/write_limit.hpp"

namespace muster::worker {
namespace {

constexpr std::size_t kBlock = 4 << 20;  // FileWriter's own, see files.cpp

std::vector<std::byte> bytes_of(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 131 >> 5);
  return bytes;
}

class FileWriterTest : public testing::TestWithParam<FileWriter::Through> {};

TEST_P(FileWriterTest, WritesEveryByteInPiecesOfAnySize) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "file";
  const auto all = bytes_of(2 * kBlock + 4097);
  for (const std::size_t size :
       {0UL, 1UL, 4095UL, 4096UL, kBlock - 1, kBlock, kBlock + 1, 2 * kBlock, all.size()})
    for (const std::size_t piece : {all.size(), kBlock / 2 + 1, 100'001UL}) {
      FileWriter file(path, GetParam());
      const auto bytes = std::span(all).first(size);
      for (std::size_t at = 0; at < size; at += piece)
        file.write(bytes.subspan(at, std::min(piece, size - at)));
      file.commit();
      EXPECT_EQ(file.size_bytes(), size);
      EXPECT_EQ(file.checksum(), checksum_of(bytes));
      EXPECT_TRUE(test::read_file(path) == std::string(reinterpret_cast<const char*>(bytes.data()), size))
          << size << " bytes in pieces of " << piece;
      EXPECT_EQ(FileReader(path).checksum(), file.checksum());
      std::filesystem::remove(path);
    }
}

TEST_P(FileWriterTest, LetsTheCallerInBetweenTheBlocks) {
  const test::TemporaryFolder folder;
  int calls = 0;
  FileWriter file(folder.path() / "file", GetParam(), [&] { ++calls; });
  file.write(bytes_of(kBlock / 2));
  EXPECT_EQ(calls, 0);
  file.write(bytes_of(4 * kBlock));
  EXPECT_EQ(calls,
            GetParam() == FileWriter::Through::direct ? 4 : 2);  // 8 MiB at a time through the page cache
  file.commit();
}

TEST_P(FileWriterTest, DoesNotTouchAFileThatIsThere) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "file";
  { FileWriter(path, GetParam()).commit(); }
  EXPECT_THROW(FileWriter(path, GetParam()), CheckpointError);
}

TEST_P(FileWriterTest, SaysWhyTheRestDoesNotFit) {
  const test::TemporaryFolder folder;
  const auto all = bytes_of(2 * kBlock);
  for (const std::size_t room : {std::size_t{5'000}, kBlock + 5'000}) {
    FileWriter file(folder.path() / std::to_string(room), GetParam());
    const test::WriteLimit full(room);
    try {
      file.write(all);
      file.commit();
      ADD_FAILURE() << "all fitted into " << room;
    } catch (const CheckpointError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("(EFBIG)"));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Through, FileWriterTest,
                         testing::Values(FileWriter::Through::page_cache, FileWriter::Through::direct),
                         [](const auto& through) {
                           return through.param == FileWriter::Through::direct ? "Direct" : "PageCache";
                         });

}  // namespace
}  // namespace muster::worker
