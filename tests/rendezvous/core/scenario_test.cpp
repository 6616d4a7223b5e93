// Replays every file of tests/scenarios. MUSTER_REWRITE_SCENARIOS=1 writes the answers into the files
// instead, to be reviewed as a diff.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/rendezvous/core/scenario.hpp"

namespace muster::rendezvous {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> scenario_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(MUSTER_SOURCE_DIR "/tests/scenarios"))
    names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

class ScenarioTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ScenarioTest, Replays) {
  const fs::path path = MUSTER_SOURCE_DIR "/tests/scenarios/" + GetParam() + ".txt";
  std::stringstream expected;
  expected << std::ifstream(path).rdbuf();
  const std::string actual = Scenario().replay(expected.str());
  if (std::getenv("MUSTER_REWRITE_SCENARIOS"))
    std::ofstream(path) << actual;
  else
    EXPECT_EQ(actual, expected.str());
}

INSTANTIATE_TEST_SUITE_P(Scenario, ScenarioTest, ::testing::ValuesIn(scenario_names()),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace muster::rendezvous
