#include "trainers/training/report.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cerrno>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/trainers/tiny_mnist.hpp"
#include "tests/worker_sdk/write_limit.hpp"

namespace muster::trainers {
namespace {

const StretchReport kEpoch{.epoch = 1,
                           .epochs = 2,
                           .loss = 0.51234,
                           .samples_per_s = 48000.4,
                           .accuracy = {.correct = 8412, .total = 10000}};

std::string printed(const std::function<void()>& call) {
  testing::internal::CaptureStdout();
  call();
  return testing::internal::GetCapturedStdout();
}

std::vector<nlohmann::json> lines_of(const std::filesystem::path& path) {
  std::vector<nlohmann::json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

TEST(Report, OneLineForEachEpoch) {
  Report report({.program = "p", .metrics_file = {}});
  EXPECT_EQ(printed([&] { report.stretch(kEpoch, {}); }),
            "p: epoch 1 of 2: loss 0.5123, test accuracy 0.8412, 48000 samples/s\n");
  auto stopped = kEpoch;
  stopped.complete = false;
  EXPECT_THAT(printed([&] { report.stretch(stopped, {.step = 7}); }),
              testing::HasSubstr("epoch 1 of 2 (stopped at step 7): loss"));
}

TEST(Report, ResumeIsSaidEvenQuietlyAndSkippedCheckpointsWithTheirReason) {
  Report report({.program = "p", .quiet = true, .metrics_file = {}});
  const worker::LoadedCheckpoint from{
      .step = 50, .facts = {}, .path = "c/step-50", .skipped = {"c/step-60: torn"}};
  EXPECT_EQ(printed([&] { report.resumed(from, {.step = 50, .epoch = 1, .position = 6400}); }),
            "p: checkpoint skipped: c/step-60: torn\n"
            "p: resumed from c/step-50: step 50, 1 epochs and 6400 samples done\n");
  EXPECT_EQ(printed([&] { report.stretch(kEpoch, {}); }), "");
}

TEST(Report, OtherRanksSayNothingAndWriteNothing) {
  const TemporaryFolder folder;
  Report report({.program = "p", .speaks = false, .metrics_file = folder / "metrics"});
  EXPECT_EQ(printed([&] {
              report.stretch(kEpoch, {});
              report.checkpoint_failed(1, "x");
            }),
            "");
  EXPECT_FALSE(std::filesystem::exists(folder / "metrics"));
}

TEST(Report, AFailedCheckpointIsSaidOnce) {
  Report report({.program = "p", .metrics_file = {}});
  EXPECT_THAT(printed([&] { report.checkpoint_failed(50, "No space left on device (ENOSPC)"); }),
              testing::AllOf(testing::HasSubstr("checkpoint of step 50 not saved: No space left"),
                             testing::HasSubstr("training goes on")));
  EXPECT_EQ(printed([&] { report.checkpoint_failed(100, "No space left on device (ENOSPC)"); }), "");
}

TEST(Report, MetricsAreJsonLinesThatASecondRunAppendsTo) {
  const TemporaryFolder folder;
  const ReportOptions options{.program = "p", .quiet = true, .metrics_file = folder / "metrics"};
  Report(options).step({.step = 1, .epoch = 0}, 2.5);
  Report(options).step({.step = 2, .epoch = 0}, std::nan(""));
  Report(options).stretch(kEpoch, {.step = 2});
  const auto lines = lines_of(folder / "metrics");
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(
      lines[0],
      (nlohmann::json{
          {"event", "step"}, {"step", 1}, {"epoch", 0}, {"loss", 2.5}, {"generation", 0}, {"round", 0}}));
  EXPECT_TRUE(lines[1]["loss"].is_null());
  EXPECT_EQ(lines[2]["test_accuracy"], 0.8412);
  EXPECT_EQ(lines[2]["complete"], true);
}

TEST(Report, AMetricsPipeThatNobodyReadsIsNotWaitedFor) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  try {
    Report report({.program = "p", .metrics_file = folder / "pipe"});
    ADD_FAILURE() << "must be refused";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("pipe: cannot be opened: No such device or address"));
  }
}

TEST(Report, AMetricsFileThatCannotBeOpenedIsNamed) {
  try {
    Report report({.program = "p", .metrics_file = "/nonexistent/metrics"});
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "--metrics-file /nonexistent/metrics: cannot be opened: No such file or directory");
  }
}

TEST(Report, AMetricsFileThatTakesNoMoreIsToldOnceWithItsOption) {
  Report report({.program = "p", .quiet = true, .metrics_file = "/dev/full"});
  EXPECT_EQ(
      printed([&] {
        report.step({.step = 1}, 2.5);
        report.step({.step = 2}, 2.5);
      }),
      "p: --metrics-file /dev/full: cannot be written: No space left on device (ENOSPC); no more lines are "
      "written to it\n");
  EXPECT_EQ(report.metrics_error(), ENOSPC);
}

TEST(Report, OfALineThatDidNotFitNothingStays) {
  const TemporaryFolder folder;
  Report report({.program = "p", .quiet = true, .metrics_file = folder / "metrics"});
  for (std::int64_t step = 1; step <= 10; ++step) report.step({.step = step}, 2.5);
  const auto whole = std::filesystem::file_size(folder / "metrics");
  const std::string printed_text = printed([&] {
    const worker::test::WriteLimit limit(whole + 5);
    report.step({.step = 11}, 2.5);
  });
  EXPECT_THAT(printed_text, testing::HasSubstr("(EFBIG)"));
  EXPECT_EQ(lines_of(folder / "metrics").size(), 10U);
  EXPECT_EQ(std::filesystem::file_size(folder / "metrics"), whole);
}

}  // namespace
}  // namespace muster::trainers
