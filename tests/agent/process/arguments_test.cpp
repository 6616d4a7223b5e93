#include "agent/process/arguments.hpp"

#include <gmock/gmock.h>

namespace muster::agent {
namespace {

using ::testing::ElementsAre;

TEST(Arguments, TheLocalRankIsPutInAsUnderTorchrun) {
  EXPECT_THAT(with_local_rank({"out-${local_rank}.log", "$local_rank", "a$local_rank/b${local_rank}"}, 3),
              ElementsAre("out-3.log", "3", "a3/b3"));
}

TEST(Arguments, AllElseStaysAsItIs) {
  const std::vector<std::string> others = {"$HOME",  "${rank}", "$$", "$local_rank2",
                                           "$local", "$",       "",   "$${local_rank}"};
  EXPECT_THAT(with_local_rank(others, 3), ::testing::ElementsAreArray(others));
}

}  // namespace
}  // namespace muster::agent
