// The program itself, against the same experiment in PyTorch on the same data.
#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <memory>

#include "tests/trainers/listed_options.hpp"
#include "tests/trainers/trainer_process.hpp"

namespace muster::trainers {
namespace {

using Arguments = std::vector<std::string>;

/// The number behind "loss "; -1 if there is none.
double loss_in(const std::string& output) {
  const std::string mark = "lr_scaling: loss ";
  const auto at = output.find(mark);
  return at == std::string::npos ? -1 : std::strtod(output.c_str() + at + mark.size(), nullptr);
}

class LrScaling : public testing::Test {
 protected:
  double run(int world_size, Arguments arguments) {
    const ReservedPort port;
    arguments.push_back("--quiet");
    std::vector<std::unique_ptr<TrainerProcess>> ranks;
    for (int rank = 0; rank < world_size; ++rank)
      ranks.push_back(std::make_unique<TrainerProcess>(
          folder_.path(), arguments,
          RankPlace{.rank = rank, .world_size = world_size, .port = port.port(), .program = "lr_scaling"}));
    for (auto& rank : ranks) EXPECT_EQ(rank->exit_code(), 0) << rank->errors();
    return loss_in(ranks[0]->output());
  }

  TemporaryFolder folder_;
};

TEST_F(LrScaling, GivesPyTorchsLosses) {
  const auto command = std::string("/usr/bin/python3 ") + MUSTER_SOURCE_DIR +
                       "/tests/trainers/lr_scaling_reference.py " + folder_.path().string();
  ASSERT_EQ(std::system(command.c_str()), 0) << "needs Debian's python3-torch: " << command;
  std::ifstream file(folder_ / "losses");
  const std::vector<double> expected(std::istream_iterator<double>(file), {});
  ASSERT_EQ(expected.size(), 3U);
  EXPECT_NEAR(expected[0], 1.583, 1e-3);
  EXPECT_NEAR(expected[1], 2.177, 1e-3);
  EXPECT_NEAR(expected[2], 1.586, 1e-3);

  const auto on_the_same = [&](int world_size, Arguments more) {
    more.insert(more.end(), {"--data", folder_ / "data", "--init", folder_ / "init"});
    return run(world_size, more);
  };
  EXPECT_NEAR(on_the_same(1, {"--batch-size", "64"}), expected[0], 1e-3);
  EXPECT_NEAR(on_the_same(1, {"--batch-size", "256"}), expected[1], 1e-3);
  EXPECT_NEAR(on_the_same(1, {"--batch-size", "256", "--lr", "0.4"}), expected[2], 1e-3);
  // Four workers, each with the batch and the rate of the first run.
  EXPECT_NEAR(on_the_same(4, {"--batch-size", "64", "--lr-scaling", "linear"}), expected[2], 1e-3);
  // The same by accumulation, on one.
  EXPECT_NEAR(on_the_same(1, {"--batch-size", "256", "--lr", "0.4", "--keep", "global-batch"}), expected[2],
              1e-3);
}

TEST_F(LrScaling, OnlyFilesAndWhatIsSaidMayDifferFromRankToRank) {
  TrainerProcess help(folder_.path(), {"--help"}, {.program = "lr_scaling"});
  ASSERT_EQ(help.exit_code(), 0) << help.errors();
  EXPECT_THAT(listed_options(help.output(), "May differ from rank to rank"),
              testing::UnorderedElementsAre("--data", "--prefetch", "--init", "--export", "--metrics-file",
                                            "--quiet"));
}

TEST_F(LrScaling, ShowsTheSameOnDataOfItsOwn) {
  const auto small = run(1, {"--batch-size", "64"});
  const auto lagging = run(1, {"--batch-size", "256"});
  const auto scaled = run(1, {"--batch-size", "256", "--lr", "0.4"});
  EXPECT_GT(small, 0);
  EXPECT_GT(lagging, small + 0.3);
  EXPECT_NEAR(scaled, small, 0.1);
}

}  // namespace
}  // namespace muster::trainers
