#include "base/system_files.hpp"

#include <gtest/gtest.h>

#include "tests/support/temporary_folder.hpp"

namespace muster {
namespace {

TEST(SystemFiles, AreReadWholeOrByTheirFirstLine) {
  const test::TemporaryFolder folder;
  const auto file = folder.write("file", "one\ntwo\n");
  EXPECT_EQ(text_of_file(file), "one\ntwo\n");
  EXPECT_EQ(first_line_of_file(file), "one");
  EXPECT_EQ(first_line_of_file(folder.write("unended", "one")), "one");
}

TEST(SystemFiles, WhatCannotBeReadIsEmpty) {
  const test::TemporaryFolder folder;
  for (const auto& path : {folder / "absent", folder.path().string()}) {
    EXPECT_EQ(text_of_file(path), "");
    EXPECT_EQ(first_line_of_file(path), "");
  }
}

TEST(CgroupLines, OfBothVersions) {
  const auto lines = parse_cgroup_lines("12:cpu,cpuacct:/a/b\n1:name=systemd:/c\n\nnonsense\n0::/d:e\n");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].path, "/a/b");
  EXPECT_TRUE(lines[0].controls("cpu"));
  EXPECT_TRUE(lines[0].controls("cpuacct"));
  EXPECT_FALSE(lines[0].controls("cpua"));
  EXPECT_FALSE(lines[0].is_v2());
  EXPECT_FALSE(lines[1].is_v2()) << "a named one of version 1";
  EXPECT_TRUE(lines[2].is_v2());
  EXPECT_EQ(lines[2].path, "/d:e");
}

}  // namespace
}  // namespace muster
