// argparse's rules, tried with torchrun's own option set.
#include "launcher/command_line.hpp"

#include <gmock/gmock.h>

#include <cctype>
#include <set>

namespace muster::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

// "--name=value" for each option in its order, then the program.
Words read(const Words& words) {
  const auto line = read_command_line(words);
  EXPECT_TRUE(line) << line.error().sentence();
  Words seen;
  if (!line) return seen;
  for (const GivenOption& each : line->options)
    seen.push_back(std::string(each.row->long_name) + "=" + each.value);
  seen.insert(seen.end(), line->program.begin(), line->program.end());
  return seen;
}

std::string refused(const Words& words) {
  const auto line = read_command_line(words);
  EXPECT_FALSE(line) << ::testing::PrintToString(words);
  return line ? "" : line.error().sentence();
}

TEST(Words, LongNamesMayBeCutShort) {
  EXPECT_THAT(read({"--redirect=3", "--tee=3", "p"}), ElementsAre("--redirects=3", "--tee=3", "p"));
  EXPECT_THAT(read({"--stand", "--nproc", "4", "p"}),
              ElementsAre("--standalone=1", "--nproc-per-node=4", "p"));
  EXPECT_THAT(read({"--nproc_per=2", "--max_r", "1", "p"}),
              ElementsAre("--nproc-per-node=2", "--max-restarts=1", "p"));
  EXPECT_THAT(read({"--rdzv-e=h:1", "--rdzv_e=h:2", "p"}),
              ElementsAre("--rdzv-endpoint=h:1", "--rdzv-endpoint=h:2", "p"));
}

TEST(Words, WhatMayMeanSeveralIsRefusedWithTheirNames) {
  EXPECT_EQ(refused({"--duplicate-std", "x", "p"}),
            "--duplicate-std: it may mean --duplicate-stdout-filters, --duplicate-stderr-filters; write more "
            "of its name");
  EXPECT_THAT(refused({"--m", "p"}), HasSubstr("--master-addr"));
  EXPECT_THAT(refused({"--st", "p"}), HasSubstr("--standalone, "));
}

TEST(Words, AnOptionOfOursTakesNoAbbreviationFromTorchrun) {
  // Whatever is an option of ours alone: each prefix that means one option to torchrun means the same here.
  for (const OptionRow& row : option_table()) {
    if (row.of_torchrun) continue;
    for (std::size_t length = 3; length < std::string(row.long_name).size(); ++length) {
      const std::string prefix = std::string(row.long_name).substr(0, length);
      std::set<std::string> torchruns;
      for (const OptionRow& other : option_table())
        if (other.of_torchrun && std::string(other.long_name).starts_with(prefix))
          torchruns.insert(other.long_name);
      const auto found = find_option(prefix);
      if (torchruns.size() == 1) {
        ASSERT_TRUE(found) << prefix;
        EXPECT_EQ((*found)->long_name, *torchruns.begin()) << prefix;
      }
    }
    EXPECT_EQ((*find_option(row.long_name))->long_name, std::string(row.long_name));
  }
}

TEST(Words, ShortOptionsGoTogether) {
  EXPECT_THAT(read({"-r3", "p"}), ElementsAre("--redirects=3", "p"));
  EXPECT_THAT(read({"-r=3", "p"}), ElementsAre("--redirects=3", "p"));
  EXPECT_THAT(read({"-r", "3", "-t", "0:1,1:2", "p"}), ElementsAre("--redirects=3", "--tee=0:1,1:2", "p"));
  EXPECT_THAT(read({"-mr3", "p"}), ElementsAre("--module=1", "--redirects=3", "p"));
  EXPECT_EQ(refused({"-mz", "p"}), "-z: there is no such option; see muster --help");
}

TEST(Words, AValueMayLookLikeAnOptionOnlyWhereArgparseAllowsIt) {
  EXPECT_EQ(refused({"--log-dir", "--standalone", "p"}),
            "--log-dir: its value is missing; see muster --help");
  EXPECT_EQ(refused({"--log-dir"}), "--log-dir: its value is missing; see muster --help");
  EXPECT_THAT(read({"--log-dir=--standalone", "p"}), ElementsAre("--log-dir=--standalone", "p"));
  EXPECT_THAT(read({"--max-restarts", "-1", "p"}), ElementsAre("--max-restarts=-1", "p"));
  EXPECT_THAT(read({"--log-line-prefix-template", "- ${rank} ", "p"}),
              ElementsAre("--log-line-prefix-template=- ${rank} ", "p"));
  EXPECT_THAT(read({"--log-dir", "-", "p"}), ElementsAre("--log-dir=-", "p"));
}

TEST(Words, TheProgramsArgumentsAreNotLookedAt) {
  EXPECT_THAT(read({"--standalone", "p", "--d", "--m", "--signal", "--dup", "-z"}),
              ElementsAre("--standalone=1", "p", "--d", "--m", "--signal", "--dup", "-z"))
      << "torchrun refuses those that are ambiguous to itself";
  EXPECT_THAT(read({"-", "--nnodes"}), ElementsAre("-", "--nnodes"));
}

TEST(OptionTable, EachNameAndEachVariableIsThereOnce) {
  std::set<std::string> seen;
  for (const OptionRow& row : option_table())
    for (const std::string name : {row.short_name, row.long_name, row.variable, row.older_variable})
      EXPECT_TRUE(name.empty() || seen.insert(name).second) << name;
}

TEST(OptionTable, TorchrunsVariablesAreNamedAfterTheirOptions) {
  for (const OptionRow& row : option_table()) {
    const std::string variable = row.variable;
    if (variable.empty()) continue;
    std::string name = with_underscores(row.long_name).substr(2);
    for (char& byte : name) byte = static_cast<char>(std::toupper(static_cast<unsigned char>(byte)));
    EXPECT_EQ(variable, (row.of_torchrun ? "PET_" : "MUSTER_") + name);
  }
}

// Section 1 of the specification: every option of today's torchrun.
TEST(OptionTable, HasEveryOptionOfTorchrun) {
  for (const char* name : {"--nnodes",
                           "--nproc-per-node",
                           "--rdzv-backend",
                           "--rdzv-endpoint",
                           "--rdzv-id",
                           "--rdzv-conf",
                           "--standalone",
                           "--max-restarts",
                           "--monitor-interval",
                           "--start-method",
                           "--event-log-handler",
                           "--role",
                           "-m",
                           "--module",
                           "--no-python",
                           "--run-path",
                           "--log-dir",
                           "-r",
                           "--redirects",
                           "-t",
                           "--tee",
                           "--local-ranks-filter",
                           "--log-line-prefix-template",
                           "--duplicate-stdout-filters",
                           "--duplicate-stderr-filters",
                           "--node-rank",
                           "--master-addr",
                           "--master-port",
                           "--local-addr",
                           "--logs-specs",
                           "--numa-binding",
                           "--signals-to-handle",
                           "--shutdown-timeout",
                           "--virtual-local-rank",
                           "-h",
                           "--help"}) {
    const auto found = find_option(name);
    ASSERT_TRUE(found) << name;
    EXPECT_TRUE((*found)->of_torchrun) << name;
    EXPECT_EQ(*find_option(with_underscores(name)), *found) << name;
  }
}

}  // namespace
}  // namespace muster::launcher
