// Thousands of clusters, each from one seed. MUSTER_SIM_SEED=n runs that seed alone and tells its story;
// MUSTER_SIM_SEEDS=n runs as many as that.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "base/endpoint.hpp"
#include "tests/sim/world.hpp"

namespace muster::sim {
namespace {

std::optional<long> number_from(const char* variable) {
  const char* text = std::getenv(variable);
  if (!text) return std::nullopt;
  return parse_integer(text, 0, 1'000'000'000).value();
}

/// 0 if the seed failed.
int run_seed(std::uint64_t seed, bool forgetful, bool trace) {
  const WorldResult result = World({seed, forgetful, trace}).run();
  if (trace) fmt::print("{} steps, {} rounds, ending: {}\n", result.steps, result.rounds, result.ending);
  EXPECT_EQ(result.wrong, "") << "replay: MUSTER_SIM_SEED=" << seed << " " MUSTER_BIN_DIR
                              << "/rendezvous_sim_test --gtest_filter=*"
                              << ::testing::UnitTest::GetInstance()->current_test_info()->name();
  return result.wrong.empty() ? result.rounds : 0;
}

void run_seeds(bool forgetful, int default_count) {
  if (const auto seed = number_from("MUSTER_SIM_SEED")) {
    run_seed(static_cast<std::uint64_t>(*seed), forgetful, true);
    return;
  }
  const long count = number_from("MUSTER_SIM_SEEDS").value_or(default_count);
  long rounds = 0;
  for (long seed = 1; seed <= count && ::testing::Test::HasFailure() == false; ++seed)
    rounds += run_seed(static_cast<std::uint64_t>(seed), forgetful, false);
  EXPECT_GT(rounds, count) << "the worlds are too quiet to prove anything";
}

// "Checked at every step: at most one live round a job; ranks dense, unique, equal on all members; size
// within min:max; budgets kept; nobody closed wrongly; and once faults stop, the job converges."
TEST(RendezvousSim, D2_NothingBreaksWhileTheDaemonRemembers) { run_seeds(false, 1500); }

// The daemon loses its memory in each crash and rebuilds it from what the agents say.
TEST(RendezvousSim, D7_ADaemonWithoutMemoryIsToldByItsAgents) { run_seeds(true, 500); }

TEST(RendezvousSim, TheSameSeedTellsTheSameStory) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const WorldResult once = World({seed}).run();
    const WorldResult again = World({seed}).run();
    EXPECT_EQ(once.steps, again.steps);
    EXPECT_EQ(once.ending, again.ending);
  }
}

}  // namespace
}  // namespace muster::sim
