#include "agent/logs/log_file.hpp"

#include <gmock/gmock.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "tests/support/temporary_folder.hpp"

namespace muster::agent {
namespace {

using test::content;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct LogFileTest : ::testing::Test {
  LogFile file(const std::string& name) {
    return LogFile(folder / name, [this](const std::string& sentence) { told.push_back(sentence); });
  }

  test::TemporaryFolder folder;
  std::vector<std::string> told;
};

TEST_F(LogFileTest, MakesItsFoldersAndAppends) {
  for (const char* text : {"one\n", "two\n"}) {
    LogFile log = file("a/b/log");
    ASSERT_TRUE(log.open());
    log.write(text);
    log.close();
  }
  EXPECT_EQ(content(folder / "a/b/log"), "one\ntwo\n");
  EXPECT_THAT(told, IsEmpty());
}

// A file system of 64 KiB that fills up, and has room again later.
TEST_F(LogFileTest, J7_OnAFullDiskWhatIsMissingIsCountedSaidAndMarked) {
  const std::string disk = folder / "disk";
  ASSERT_EQ(::mkdir(disk.c_str(), 0700), 0);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=64k") != 0)
    GTEST_SKIP() << "no tmpfs can be mounted here";
  {
    LogFile other = file("disk/other");
    ASSERT_TRUE(other.open());
    other.write(std::string(40'000, 'o') + "\n");
    other.close();
    LogFile log = file("disk/log");
    ASSERT_TRUE(log.open());
    const std::string line(99, 'x');
    for (int number = 0; number < 1000; ++number) log.write(line + "\n");
    EXPECT_GT(log.lost_bytes(), 50'000u);
    ASSERT_EQ(told.size(), 1u) << "once, not a thousand times";
    EXPECT_THAT(told[0], HasSubstr("disk/log: No space left on device (ENOSPC); the job goes on, "));
    std::filesystem::remove(disk + "/other");
    const auto lost = log.lost_bytes();
    log.write("back\n");
    EXPECT_EQ(log.lost_bytes(), lost);
    log.close();
    const std::string text = content(disk + "/log");
    EXPECT_THAT(text, HasSubstr("\nmuster: " + std::to_string(lost) +
                                " bytes are missing here: No space left on device (ENOSPC)\nback\n"));
    const auto note = text.find("muster: ");
    const auto kept = note - (text[note - 2] == 'x' ? 1 : 0);  // the note may have had to begin a line
    EXPECT_EQ(kept + lost, 100'000u);
    ASSERT_EQ(told.size(), 2u);
    EXPECT_THAT(told[1], HasSubstr(std::to_string(lost) + " bytes of this log are lost so far"));
  }
  EXPECT_EQ(::umount2(disk.c_str(), MNT_DETACH), 0);
}

TEST_F(LogFileTest, WhatCannotBeOpenedCostsTheFileAlone) {
  folder.write("file", "x");
  LogFile log = file("file/log");
  EXPECT_TRUE(log.open());
  log.write("lost\n");
  log.close();
  EXPECT_EQ(log.lost_bytes(), 5u);
  ASSERT_EQ(told.size(), 2u);
  EXPECT_THAT(told[0], HasSubstr("file: Not a directory (ENOTDIR); the job goes on, this log is lost"));
  EXPECT_THAT(told[1], HasSubstr("5 bytes"));
}

TEST_F(LogFileTest, APipeThatNobodyReadsHoldsNobody) {
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  LogFile log = file("pipe");
  EXPECT_TRUE(log.open());
  log.write("lost\n");
  EXPECT_EQ(log.lost_bytes(), 5u);
}

}  // namespace
}  // namespace muster::agent
