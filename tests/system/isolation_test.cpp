// Jobs on one machine do not meet.
#include <gmock/gmock.h>

#include "tests/system/muster_job.hpp"

namespace muster::test {
namespace {

using namespace std::chrono_literals;

TEST(Isolation, C1_TwoDefaultJobsStartedTogetherBothSucceed50Times) {
  for (int attempt = 0; attempt < 50; ++attempt) {
    const Job job;
    Program first(muster_command("--nproc-per-node=2", "touch " + (job.folder / "first-{rank}")),
                  job.options());
    Program second(muster_command("--nproc-per-node=2", "touch " + (job.folder / "second-{rank}")),
                   job.options());
    const auto first_ended = first.wait(30s);
    const auto second_ended = second.wait(30s);
    ASSERT_EQ(first_ended.code, 0) << first_ended.err;
    ASSERT_EQ(second_ended.code, 0) << second_ended.err;
    for (const char* name : {"first-0", "first-1", "second-0", "second-1"})
      ASSERT_TRUE(std::filesystem::exists(job.folder / name)) << name;
  }
}

}  // namespace
}  // namespace muster::test
