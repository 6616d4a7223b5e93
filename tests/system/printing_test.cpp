// What was asked for and cannot be printed is an error, of every program.
#include <gmock/gmock.h>

#include "tests/system/muster_job.hpp"

namespace muster::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Ne;

class Printing : public ::testing::TestWithParam<const char*> {};

TEST_P(Printing, ToAFullDiskIsAnErrorWithASentence) {
  const std::string command = std::string(MUSTER_BIN_DIR "/") + GetParam();
  const auto ended = run({"/bin/sh", "-c", command + " >/dev/full"}, {});
  EXPECT_THAT(ended.code, Ne(0));
  EXPECT_THAT(ended.err, HasSubstr(": standard output: ")) << command;
  EXPECT_THAT(ended.err, HasSubstr("; what was to be printed is not there in whole\n"));
  EXPECT_EQ(run({"/bin/sh", "-c", command}, {}).code, 0);
}

INSTANTIATE_TEST_SUITE_P(All, Printing,
                         ::testing::Values("muster --help", "muster --version", "muster --dry-run /bin/true",
                                           "musterd --help", "musterctl --help", "muster_audit --help",
                                           "muster_checkpoint --help", "ddp_mnist --help"));

}  // namespace
}  // namespace muster::test
