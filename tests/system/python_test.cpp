// Python scripts and modules as workers.
#include <gmock/gmock.h>

#include "tests/system/muster_job.hpp"

namespace muster::test {
namespace {

using ::testing::HasSubstr;

TEST(Python, AScriptAndAModuleGetTheirArgumentsUntouched) {
  const Job job;
  const auto script = job.folder.write("train.py", "import sys; print(sys.argv[1:])\n");
  const auto ended = run({kMuster, script, "--nnodes", "3", "--", "-h", ""}, job.options());
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, "['--nnodes', '3', '--', '-h', '']\n");
  auto options = job.options();
  options.folder = job.folder.path();
  const auto module = run({kMuster, "-m", "train", "x"}, options);
  EXPECT_EQ(module.code, 0) << module.err;
  EXPECT_EQ(module.out, "['x']\n");
}

TEST(Python, I2_ATracebackIsAtTheEndOfTheScreen) {
  const Job job;
  const auto script = job.folder.write("fail.py",
                                       "import os, time\n"
                                       "if os.environ['RANK'] == '1':\n"
                                       "    raise ValueError('shape mismatch')\n"
                                       "time.sleep(60)\n");
  const auto ended = run({kMuster, "--nproc-per-node=2", script}, job.options());
  EXPECT_EQ(ended.code, 1);
  const auto report = ended.err.substr(ended.err.find("FAILED"));
  EXPECT_THAT(report, HasSubstr("line 3, in <module>"));
  EXPECT_THAT(report, HasSubstr("ValueError: shape mismatch"));
  EXPECT_LT(count_lines(report), 30);
}

}  // namespace
}  // namespace muster::test
