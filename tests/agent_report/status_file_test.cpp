#include <gmock/gmock.h>
#include <stdlib.h>

#include <fstream>
#include <sstream>

#include "agent/report/report.hpp"

namespace muster::agent {
namespace {

using ::testing::HasSubstr;

struct StatusFileTest : ::testing::Test {
  StatusFileTest() {
    std::string pattern = ::testing::TempDir() + "status_XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    folder = pattern;
  }
  ~StatusFileTest() override { std::filesystem::remove_all(folder); }
  std::filesystem::path folder;
};

TEST_F(StatusFileTest, ReplacesTheOldOneAndLeavesNothingBesides) {
  ASSERT_TRUE(write_status_file(folder / "status.json", "a long first version\n"));
  ASSERT_TRUE(write_status_file(folder / "status.json", "second\n"));
  std::ifstream file(folder / "status.json");
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), "second\n");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
}

TEST_F(StatusFileTest, AFolderThatIsGoneIsNamed) {
  const auto written = write_status_file(folder / "none/status.json", "x");
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().sentence(), HasSubstr("none/status.json"));
  EXPECT_THAT(written.error().sentence(), HasSubstr("No such file or directory (ENOENT)"));
}

TEST_F(StatusFileTest, ATargetThatCannotBeReplacedLeavesNoPart) {
  std::filesystem::create_directories(folder / "status.json/full");
  EXPECT_FALSE(write_status_file(folder / "status.json", "x"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
}

}  // namespace
}  // namespace muster::agent
