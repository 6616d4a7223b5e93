#include "launcher/log_options.hpp"

#include <gmock/gmock.h>

#include "tests/launcher/environment_of.hpp"

namespace muster::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

agent::OutputOptions parsed(std::vector<std::string> words,
                            std::map<std::string, std::string> variables = {}) {
  words.push_back("prog");
  const auto options = parse_command_line(words, environment_of(std::move(variables)));
  EXPECT_TRUE(options) << options.error().sentence();
  return options ? options->logs : agent::OutputOptions{};
}

std::string refused(const std::string& word) {
  const auto options = parse_command_line({word, "prog"}, environment_of({}));
  EXPECT_FALSE(options) << word;
  return options ? "" : options.error().sentence();
}

TEST(LogOptions, StreamsForAllOrForEach) {
  EXPECT_FALSE(parsed({}).redirects);
  EXPECT_EQ(parsed({"-r3"}).redirects->of(4), Streams::both);
  EXPECT_EQ(parsed({"--tee=0:1,11:3"}).tee->of(11), Streams::both);
  EXPECT_EQ(parsed({}, {{"PET_REDIRECTS", "2"}}).redirects->of(0), Streams::err);
  EXPECT_EQ(refused("--redirects=4"),
            "--redirects: '4' is not allowed; it takes 0 (none), 1 (stdout), 2 (stderr) or 3 (both), or "
            "LOCAL-RANK:0-3,...");
}

TEST(LogOptions, J2_LocalAndGlobalRanksOfTheConsole) {
  EXPECT_THAT(*parsed({"--local-ranks-filter=0,2"}).console_local_ranks, ElementsAre(0, 2));
  EXPECT_FALSE(parsed({}).console_local_ranks);
  EXPECT_THAT(*parsed({"--ranks-filter=0-2,8"}).console_ranks, ElementsAre(0, 1, 2, 8));
  EXPECT_FALSE(parsed({"--ranks-filter=3"}).console_local_ranks);
  EXPECT_THAT(refused("--ranks-filter=3-1"), HasSubstr("--ranks-filter: '3-1' is not allowed"));
  EXPECT_THAT(refused("--local-ranks-filter=0,,2"), HasSubstr("--local-ranks-filter: '0,,2' is not allowed"));
}

TEST(LogOptions, ThePrefixOfTheOptionBeatsTheOlderVariable) {
  const std::string older = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE";
  EXPECT_EQ(parsed({}, {{older, "[${rank}]"}}).line_prefix, "[${rank}]");
  EXPECT_EQ(parsed({}, {{older, "a"}, {"PET_LOG_LINE_PREFIX_TEMPLATE", "b"}}).line_prefix, "b");
  EXPECT_EQ(parsed({"--log-line-prefix-template=c"}, {{older, "a"}}).line_prefix, "c");
}

TEST(LogOptions, FiltersArePartedByCommasAndTwoStandForOne) {
  EXPECT_THAT(parse_filter_texts("OOM,a,,b,NaN"), ElementsAre("OOM", "a,b", "NaN"));
  EXPECT_THAT(parse_filter_texts(""), IsEmpty());
  EXPECT_THAT(parsed({"--duplicate_stdout_filters=x,y", "--duplicate-stderr-filters=z"}).stdout_filters,
              ElementsAre("x", "y"));
}

TEST(LogOptions, OursAreOffUnlessAskedFor) {
  const auto usual = parsed({});
  EXPECT_FALSE(usual.terminals);
  EXPECT_FALSE(usual.collapse);
  EXPECT_FALSE(usual.match);
  EXPECT_FALSE(usual.line_prefix);
  const auto asked = parsed({"--pty", "--collapse=200ms", "--log-match=^E", "--log-line-prefix-template="});
  EXPECT_TRUE(asked.terminals);
  EXPECT_EQ(asked.collapse, std::chrono::milliseconds(200));
  EXPECT_TRUE(asked.match->matches("Error"));
  EXPECT_EQ(asked.line_prefix, "") << "raw lines";
  EXPECT_THAT(refused("--log-match=("), HasSubstr("--log-match: '(': "));
}

TEST(LogOptions, J7_FilesMayBeNamedByVariables) {
  const auto options =
      parse_command_line({"--log-file=${JOB}/{rank}.log", "prog"}, environment_of({{"JOB", "7"}}));
  ASSERT_TRUE(options);
  EXPECT_EQ(options->logs.variable("JOB"), "7");
  EXPECT_THAT(refused("--log-file=${JOB}/{rank}.log"), HasSubstr("--log-file: '${JOB}' is not known"));
  EXPECT_THAT(refused("--log-file=all.log"),
              HasSubstr("--log-file: 'all.log' is the same file for all workers"));
}

TEST(LogOptions, FilesOfAJobThatKeepsNoneAreNamed) {
  const auto options =
      parse_command_line({"--log-dir=/dev/null", "--log-match=x", "prog"}, environment_of({}));
  ASSERT_TRUE(options);
  EXPECT_THAT(options->notes,
              ElementsAre("--log-match has no effect here: --log-dir=/dev/null keeps no logs"));
}

}  // namespace
}  // namespace muster::launcher
