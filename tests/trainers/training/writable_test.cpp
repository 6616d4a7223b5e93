#include "trainers/training/writable.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/support/temporary_folder.hpp"

namespace muster::trainers {
namespace {

std::string refusal(const std::function<void()>& check) {
  try {
    check();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Writable, AFolderIsMadeAndKeepsNothingOfTheTrial) {
  const test::TemporaryFolder scratch;
  const std::filesystem::path folder = scratch / "a/b";
  EXPECT_EQ(refusal([&] { check_writable_folder(folder, "--checkpoint-dir"); }), "accepted");
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST(Writable, WhatCannotBeWrittenIsNamedWithItsOption) {
  const test::TemporaryFolder scratch;
  std::ofstream(scratch / "file") << "x";
  const std::filesystem::path below = scratch / "file/below";
  EXPECT_EQ(refusal([&] { check_writable_folder(below, "--checkpoint-dir"); }),
            "--checkpoint-dir " + below.string() +
                ": Not a directory; expected a folder that can be made and written");
  const std::filesystem::path missing = scratch / "missing/model";
  EXPECT_EQ(refusal([&] { check_writable_file(missing, "--export"); }),
            "--export " + missing.string() +
                ": No such file or directory; expected a file in a folder that is there and can be written");
  EXPECT_THAT(refusal([&] { check_writable_file(scratch.path(), "--export"); }),
              testing::HasSubstr("Is a directory"));
  EXPECT_EQ(refusal([&] { check_writable_file(scratch / "model", "--export"); }), "accepted");
  EXPECT_EQ(refusal([&] { check_writable_file("model", "--export"); }), "accepted");
}

TEST(Writable, ADeviceOrAPipeIsNotReplacedByAFileAndALinkMayStay) {
  const test::TemporaryFolder scratch;
  ASSERT_EQ(::mkfifo((scratch / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(refusal([&] { check_writable_file(scratch / "pipe", "--export"); }),
              testing::HasSubstr("is not a regular file"));
  EXPECT_THAT(refusal([&] { check_writable_file("/dev/null", "--export"); }),
              testing::HasSubstr("is not a regular file"));
  std::ofstream(scratch / "file") << "x";
  std::filesystem::create_symlink("file", scratch / "link");
  EXPECT_EQ(refusal([&] { check_writable_file(scratch / "link", "--export"); }), "accepted");
}

}  // namespace
}  // namespace muster::trainers
