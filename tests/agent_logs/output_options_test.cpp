#include "agent/logs/output_options.hpp"

#include <gmock/gmock.h>

namespace muster::agent {
namespace {

using ::testing::HasSubstr;

constexpr auto out = Streams::out;
constexpr auto err = Streams::err;

std::optional<StreamMap> streams(const std::string& text) { return *parse_stream_map(text); }

TEST(OutputOptions, ByDefaultAllIsShownAsItWasWritten) {
  const OutputOptions options;
  for (const Streams stream : {out, err}) {
    EXPECT_TRUE(is_shown(options, stream, 0, 0));
    EXPECT_EQ(prefix_template(options, stream, 0), "");
  }
}

TEST(OutputOptions, RedirectedStreamsAreNotShown) {
  OutputOptions options;
  options.redirects = streams("1");
  EXPECT_FALSE(is_shown(options, out, 0, 0));
  EXPECT_TRUE(is_shown(options, err, 0, 0));
  options.redirects = streams("0:3,12:2");
  EXPECT_FALSE(is_shown(options, err, 0, 0));
  EXPECT_TRUE(is_shown(options, out, 12, 12)) << "local ranks may have two digits";
  EXPECT_FALSE(is_shown(options, err, 12, 12));
  EXPECT_TRUE(is_shown(options, out, 1, 1)) << "a rank that is not named";
}

TEST(OutputOptions, TeedStreamsAreShownWithTorchrunsPrefix) {
  OutputOptions options;
  options.redirects = streams("3");
  options.tee = streams("1");
  EXPECT_TRUE(is_shown(options, out, 0, 0));
  EXPECT_FALSE(is_shown(options, err, 0, 0));
  EXPECT_EQ(prefix_template(options, out, 0), "[${role_name}${local_rank}]:");
  options.redirects.reset();
  EXPECT_EQ(prefix_template(options, err, 0), "") << "not teed, so as it was written";
}

TEST(OutputOptions, J5_AGivenPrefixIsOfAllLinesAndMayBeEmpty) {
  OutputOptions options;
  options.tee = streams("3");
  options.line_prefix = "";
  EXPECT_EQ(prefix_template(options, out, 0), "");
  options.line_prefix = "{rank}|";
  options.tee.reset();
  EXPECT_EQ(prefix_template(options, err, 0), "{rank}|");
}

TEST(OutputOptions, J2_FiltersAreByLocalAndByGlobalRank) {
  OutputOptions options;
  options.console_local_ranks = {0};
  EXPECT_TRUE(is_shown(options, out, 0, 4));
  EXPECT_FALSE(is_shown(options, out, 1, 5));
  options.console_ranks = {0, 1};
  EXPECT_FALSE(is_shown(options, out, 0, 4)) << "both have to let it pass";
  EXPECT_TRUE(is_shown(options, out, 0, 0));
}

TEST(OutputOptions, J2_AFilterThatNoRankOfTheWorldPassesIsTold) {
  OutputOptions options;
  EXPECT_EQ(filter_without_ranks(options, 1), "");
  options.console_ranks = {1, 8};
  EXPECT_EQ(filter_without_ranks(options, 2), "") << "the world may grow to the others";
  options.console_ranks = {2, 8};
  EXPECT_EQ(filter_without_ranks(options, 2),
            "--ranks-filter lets ranks 2, 8 pass, and this round has ranks 0-1: the console shows "
            "nothing of it");
}

WorkerName somebody() {
  WorkerName name;
  name.job = "a/b";
  name.node = "n1";
  name.rank = "5";
  name.local_rank = "1";
  name.round = 2;
  return name;
}

TEST(OutputOptions, J7_FilesFollowTheTemplate) {
  OutputOptions options;
  EXPECT_EQ(log_file_of(options, "/run", somebody(), "stdout"), "/run/round-2/rank-5/stdout.log");
  options.variable = [](std::string_view name) {
    return name == "JOB" ? std::optional<std::string>("77/x") : std::nullopt;
  };
  options.file = "${JOB}/{rank}.log";
  EXPECT_EQ(log_file_of(options, "/run", somebody(), "stdout"), "/run/77/x/5.log");
  options.file = "/scratch/{job}-{node}.{local_rank}.{stream}";
  EXPECT_EQ(log_file_of(options, "/run", somebody(), "stderr"), "/scratch/a_b-n1.1.stderr")
      << "names make no folders";
  EXPECT_EQ(log_file_of(options, "", somebody(), "stderr"), "") << "no logs are kept";
}

TEST(OutputOptions, J7_ATemplateThatCannotBeMeantIsRefused) {
  const auto variable = [](std::string_view name) {
    return name == "JOB" ? std::optional<std::string>("77") : std::nullopt;
  };
  EXPECT_TRUE(check_file_template("${JOB}/{rank}.log", variable));
  EXPECT_TRUE(check_file_template(kLogFileTemplate, variable));
  const auto refused = [&](const char* text) {
    return check_file_template(text, variable).error().sentence();
  };
  EXPECT_THAT(refused(""), HasSubstr("empty"));
  EXPECT_THAT(refused("{ranks}/{rank}"), HasSubstr("'{ranks}' is not known"));
  EXPECT_THAT(refused("${JOBB}/{rank}"), HasSubstr("'${JOBB}' is not known"));
  EXPECT_THAT(refused("{job}.log"), HasSubstr("the same file for all workers"));
}

}  // namespace
}  // namespace muster::agent
