#include "launcher/node_id.hpp"

#include <gtest/gtest.h>

#include "tests/launcher/environment_of.hpp"
#include "tests/support/temporary_folder.hpp"

namespace muster::launcher {
namespace {

LauncherOptions for_nodes(int number) {
  LauncherOptions options;
  options.max_nodes = number;
  return options;
}

TEST(NodeName, EachLauncherOfAJobOnOneHostHasItsOwn) {
  const test::TemporaryFolder folder;
  const auto environment = environment_of({{"TMPDIR", folder.path().string()}});
  const auto first = take_node_name(for_nodes(2), "mnist", "n1", environment);
  auto second = take_node_name(for_nodes(2), "mnist", "n1", environment);
  EXPECT_EQ(first.id, "n1");
  EXPECT_EQ(second.id, "n1-2");
  EXPECT_EQ(take_node_name(for_nodes(2), "other", "n1", environment).id, "n1");
}

TEST(NodeName, HostsThatShareTheFolderDoNotTakeEachOthersNames) {
  const test::TemporaryFolder folder;
  const auto environment = environment_of({{"TMPDIR", folder.path().string()}});
  const auto first = take_node_name(for_nodes(2), "mnist", "n1", environment);
  const auto second = take_node_name(for_nodes(2), "mnist", "n2", environment);
  EXPECT_EQ(first.id, "n1");
  EXPECT_EQ(second.id, "n2");
}

TEST(NodeName, D6_ARelaunchedOneHasItsNameBack) {
  const test::TemporaryFolder folder;
  const auto environment = environment_of({{"TMPDIR", folder.path().string()}});
  auto first = take_node_name(for_nodes(2), "mnist", "n1", environment);
  const auto second = take_node_name(for_nodes(2), "mnist", "n1", environment);
  first.lock.reset();
  EXPECT_EQ(take_node_name(for_nodes(2), "mnist", "n1", environment).id, "n1");
}

TEST(NodeName, GivenOrAloneItIsTakenAsItIs) {
  const test::TemporaryFolder folder;
  const auto environment = environment_of({{"TMPDIR", folder.path().string()}});
  auto given = for_nodes(2);
  given.node_id = "left";
  EXPECT_EQ(take_node_name(given, "mnist", "n1", environment).id, "left");
  EXPECT_EQ(take_node_name(for_nodes(1), "mnist", "n1", environment).id, "n1");
  EXPECT_EQ(take_node_name(for_nodes(1), "mnist", "n1", environment).id, "n1");
}

TEST(NodeName, WithoutAFolderForLocksItIsTheHostsName) {
  const auto environment = environment_of({{"TMPDIR", "/nonexistent"}});
  EXPECT_EQ(take_node_name(for_nodes(2), "mnist", "n1", environment).id, "n1");
}

}  // namespace
}  // namespace muster::launcher
