#include "trainers/training/option_table.hpp"

#include <gmock/gmock.h>

#include "tests/trainers/listed_options.hpp"
#include "trainers/training/fsdp_mlp_options.hpp"

namespace muster::trainers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using Names = std::set<std::string>;

template <class Use>
auto with_arguments(std::vector<std::string> arguments, const Use& use) {
  arguments.insert(arguments.begin(), "program");
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  return use(static_cast<int>(argv.size()), argv.data());
}

enum class Colour : std::uint8_t { red, green };
const std::map<std::string, Colour> kColours = {{"red", Colour::red}, {"green", Colour::green}};

struct Values {
  int count = 3;
  double rate = 0.5;
  Colour colour = Colour::red;
  bool thorough = false;
  bool quiet = false;
  std::filesystem::path folder;
  std::filesystem::path log;
};

/// What ranks started with these arguments would compare.
Description agreement(const std::vector<std::string>& arguments, Values& values) {
  OptionTable table("what it is");
  table.agreed("--count", values.count, "");
  table.agreed("--rate", values.rate, "");
  table.agreed_choice("--colour", values.colour, kColours, "");
  table.agreed_flag(
      "--thorough", [&values] { values.thorough = true; }, "");
  table.agreed_presence("--folder", values.folder, "");
  table.own("--log", values.log, "");
  table.own_flag("--quiet", values.quiet, "");
  with_arguments(arguments, [&](int argc, char** argv) { table.parse(argc, argv); });
  return table.agreement();
}

TEST(OptionTable, ComparesTheValuesOfAllButARanksOwn) {
  Values values;
  EXPECT_THAT(agreement({}, values),
              ElementsAre(Pair("--count", "3"), Pair("--rate", "0.5"), Pair("--colour", "red"),
                          Pair("--thorough", "not given"), Pair("--folder", "none")));
  EXPECT_THAT(
      agreement({"--rate=1e0", "--colour=Green", "--thorough", "--folder=a", "--log=b", "--quiet"}, values),
      ElementsAre(Pair("--count", "3"), Pair("--rate", "1"), Pair("--colour", "green"),
                  Pair("--thorough", "given"), Pair("--folder", "one")));
  EXPECT_TRUE(values.thorough);
  EXPECT_TRUE(values.quiet);
  EXPECT_EQ(values.log, "b");
}

TEST(OptionTable, AWordThatIsNoneOfThemIsRefusedWithThoseThatAre) {
  Values values;
  try {
    agreement({"--colour=blue"}, values);
    FAIL();
  } catch (const CLI::ParseError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--colour: 'blue' is none of green, red"));
  }
}

/// What two runs of the same program may differ in; all else must be compared.
const Names kOwn = {"--data-dir", "--prefetch", "--init", "--export", "--metrics-file", "--quiet"};

template <class Parse>
void expect_every_option_is_compared_or_a_ranks_own(const Parse& parse) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(with_arguments({"--help"}, parse).first, 0);
  const auto help = testing::internal::GetCapturedStdout();
  EXPECT_EQ(listed_options(help, OptionTable::kOwnGroup), kOwn);
  Names compared;
  for (const auto& [name, value] : with_arguments({}, parse).second) compared.insert(name);
  EXPECT_EQ(listed_options(help, "Options"), compared);
  for (const auto* name : {"--lr-decay", "--warmup-steps", "--lr-scaling", "--base-workers", "--drop-last",
                           "--allow-nan", "--checkpoint-wait"})
    EXPECT_TRUE(compared.contains(name)) << name;
}

TEST(OptionTable, EveryOptionOfEveryTrainerIsComparedOrARanksOwn) {
  using Parsed = std::pair<std::optional<int>, Description>;
  expect_every_option_is_compared_or_a_ranks_own([](int argc, char** argv) {
    const auto parsed = parse_trainer_options(argc, argv, {.what = "what it is"});
    return Parsed{parsed.exit_code, parsed.options.agreement};
  });
  expect_every_option_is_compared_or_a_ranks_own([](int argc, char** argv) {
    const auto parsed = parse_fsdp_mlp_options(argc, argv);
    if (!parsed.exit_code) {
      EXPECT_THAT(parsed.options.trainer.agreement, testing::Contains(Pair("--weight-decay", "0.01")));
    }
    return Parsed{parsed.exit_code, parsed.options.trainer.agreement};
  });
}

}  // namespace
}  // namespace muster::trainers
