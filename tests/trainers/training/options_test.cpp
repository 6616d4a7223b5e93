#include "trainers/training/options.hpp"

#include <gmock/gmock.h>

namespace muster::trainers {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ParsedOptions parse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "/bin/ddp_mnist");
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  return parse_trainer_options(static_cast<int>(argv.size()), argv.data(), {.what = "what it is"});
}

std::string complaint(const std::vector<std::string>& arguments) {
  try {
    parse(arguments);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  ADD_FAILURE() << "accepted";
  return "";
}

TEST(Options, DefaultsAreTheArticlesTraining) {
  const auto parsed = parse({});
  ASSERT_FALSE(parsed.exit_code);
  EXPECT_EQ(parsed.options.fit.epochs, 5);
  EXPECT_EQ(parsed.options.fit.batch_size, 64);
  EXPECT_EQ(parsed.options.schedule.rate, 1e-3);
  EXPECT_EQ(parsed.options.data_dir, "/usr/share/datasets/fashion-mnist");
}

TEST(Options, AllAreRead) {
  const auto parsed =
      parse({"--data-dir", "d",           "--epochs=2", "--batch-size",     "8", "--lr",
             "0.5",        "--seed",      "9",          "--checkpoint-dir", "c", "--checkpoint-every",
             "50",         "--keep-last", "1",          "--export",         "e", "--metrics-file",
             "m",          "--max-steps", "7",          "--init",           "i", "--quiet"});
  ASSERT_FALSE(parsed.exit_code);
  const auto& options = parsed.options;
  EXPECT_EQ(options.fit.checkpoint_every_steps, 50);
  EXPECT_EQ(options.fit.max_steps, 7);
  EXPECT_EQ(options.fit.seed, 9U);
  EXPECT_EQ(options.checkpoints.keep_last, 1);
  EXPECT_EQ(options.checkpoints.folder, "c");
  EXPECT_TRUE(options.checkpoints.in_background);
  EXPECT_EQ(options.init_file, "i");
  EXPECT_EQ(options.export_file, "e");
  EXPECT_TRUE(options.quiet);
}

TEST(Options, ScheduleDataAndBadNumbersAreRead) {
  const auto options =
      parse({"--lr-scaling=sqrt", "--base-workers=2", "--warmup-steps=9", "--lr-decay=cosine",
             "--batch-size=32", "--keep=global-batch", "--drop-last", "--prefetch=3", "--allow-nan",
             "--checkpoint-wait", "--require-checkpoints", "--audit-dir=a"})
          .options;
  EXPECT_THAT(options.without_effect, ElementsAre("--checkpoint-wait", "--require-checkpoints"));
  EXPECT_THAT(parse({"--checkpoint-wait", "--checkpoint-dir=c"}).options.without_effect, IsEmpty());
  ASSERT_TRUE(options.fit.schedule);
  EXPECT_EQ(options.fit.schedule->scaling, RateScaling::square_root);
  EXPECT_EQ(options.fit.schedule->reference_batch, 64);
  EXPECT_EQ(options.fit.schedule->warmup_steps, 9);
  EXPECT_EQ(options.fit.schedule->decay, RateDecay::cosine);
  EXPECT_EQ(options.fit.keep, Keep::global_batch);
  EXPECT_EQ(options.fit.tail, Tail::drop);
  EXPECT_EQ(options.fit.prefetch, 3);
  EXPECT_EQ(options.fit.not_finite, NotFinite::is_allowed);
  EXPECT_EQ(options.fit.audit_folder, "a");
  EXPECT_FALSE(options.checkpoints.in_background);
  EXPECT_TRUE(options.require_checkpoints);
  EXPECT_THAT(complaint({"--lr-scaling=cubic"}), HasSubstr("--lr-scaling"));
}

TEST(Options, BadOnesAreNamedInOneLineWithWhatIsAllowed) {
  EXPECT_THAT(complaint({"--epochs", "0"}),
              AllOf(HasSubstr("ddp_mnist: --epochs: "), HasSubstr("not in range 1 to 1000000")));
  EXPECT_THAT(complaint({"--batch-size", "abc"}), AllOf(HasSubstr("--batch-size"), HasSubstr("range")));
  EXPECT_THAT(complaint({"--batch-size", "1e9"}), AllOf(HasSubstr("--batch-size"), HasSubstr("range")));
  EXPECT_THAT(complaint({"--lr", "nan"}), AllOf(HasSubstr("--lr"), HasSubstr("range")));
  EXPECT_THAT(complaint({"--lr", "-1"}), AllOf(HasSubstr("--lr"), HasSubstr("range")));
  EXPECT_THAT(complaint({"--seed", "-1"}), HasSubstr("--seed"));
  EXPECT_THAT(complaint({"--keep-last", "0"}), AllOf(HasSubstr("--keep-last"), HasSubstr("range")));
  EXPECT_THAT(complaint({"--epoch", "1"}), HasSubstr("--epoch"));
  EXPECT_THAT(complaint({"stray"}), HasSubstr("stray"));
}

TEST(Options, AnEmptyValueTakesNoOtherOptionForItsOwn) {
  EXPECT_THAT(complaint({"--export=", "--max-steps", "2"}), HasSubstr("--export: its value is empty"));
  EXPECT_THAT(complaint({"--checkpoint-dir", "", "--max-steps=2"}),
              HasSubstr("--checkpoint-dir: its value is empty"));
  EXPECT_EQ(parse({"--export=a=b"}).options.export_file, "a=b");
}

TEST(Options, HelpEndsWell) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(parse({"--help"}).exit_code, 0);
  EXPECT_THAT(testing::internal::GetCapturedStdout(), AllOf(HasSubstr("what it is"), HasSubstr("--export")));
}

}  // namespace
}  // namespace muster::trainers
