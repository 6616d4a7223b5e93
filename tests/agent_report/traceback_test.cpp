#include "agent/report/traceback.hpp"

#include <gtest/gtest.h>

namespace muster::agent {
namespace {

TEST(Traceback, I2_TheErrorAndTheUsersOwnLineAreFound) {
  const auto found = find_traceback(
      {"step 3", "Traceback (most recent call last):", "  File \"/home/me/train.py\", line 42, in <module>",
       "    main()", "  File \"/home/me/model.py\", line 7, in forward", "    return self.linear(x)",
       "  File \"/usr/lib/python3/dist-packages/torch/nn/linear.py\", line 114, in forward",
       "    return F.linear(input)", "           ^^^^^^^^^^^^^^^", "ValueError: shape mismatch",
       "  expected 3"});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->error, "ValueError: shape mismatch");
  EXPECT_EQ(found->place, "model.py line 7");
}

TEST(Traceback, TheOneThatEndedTheProgramCounts) {
  const auto found = find_traceback(
      {"Traceback (most recent call last):", "  File \"a.py\", line 1, in f", "KeyError: 'x'", "",
       "During handling of the above exception, another exception occurred:", "",
       "Traceback (most recent call last):", "  File \"b.py\", line 2, in g", "RuntimeError: no x",
       "Exception ignored in: <function Pool.__del__>",
       "Traceback (most recent call last):", "  File \"c.py\", line 3, in __del__", "AttributeError: gone"});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->error, "RuntimeError: no x");
  EXPECT_EQ(found->place, "b.py line 2");
}

TEST(Traceback, ItsBeginningMayBeCutOffAndPyTorchMayNameTheRank) {
  const auto found =
      find_traceback({"[rank1]:     x()", "[rank1]:   File \"/a/lib/python3.11/runpy.py\", line 9, in r",
                      "[rank1]:     exec()", "[rank1]: OSError: [Errno 5] no"});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->error, "OSError: [Errno 5] no");
  EXPECT_EQ(found->place, "runpy.py line 9") << "better than nothing";
}

TEST(Traceback, OtherTextIsNone) {
  EXPECT_FALSE(find_traceback({}));
  EXPECT_FALSE(find_traceback({"error: no", "  File not found", "bye"}));
  EXPECT_FALSE(find_traceback({"Traceback (most recent call last):", "  File \"a.py\", line 1, in f"}));
}

// The lines of an uncaught exception as Python prints them, and what follows.
std::vector<std::string> error_and(std::vector<std::string> further) {
  std::vector<std::string> lines = {"Traceback (most recent call last):", "  File \"a.py\", line 1, in f",
                                    "RuntimeError: no"};
  lines.insert(lines.end(), further.begin(), further.end());
  return lines;
}

TEST(Traceback, WhoWentOnAfterItHandledIt) {
  for (const char* line : {"apex not found, using native", "ERROR:root:loss is NaN at step 9; giving up",
                           "bye", "WARNING:root:slow", "/a/b.py:3: UserWarning: slow"}) {
    const auto found = find_traceback(error_and({line}));
    ASSERT_TRUE(found);
    EXPECT_FALSE(found->last) << line;
  }
  EXPECT_FALSE(find_traceback(error_and({"bye", "Exception ignored in: <function f>",
                                         "Traceback (most recent call last):",
                                         "  File \"c.py\", line 3, in g", "AttributeError: gone"}))
                   ->last);
  EXPECT_TRUE(find_traceback(error_and({"bye", "Traceback (most recent call last):",
                                        "  File \"b.py\", line 2, in g", "KeyError: 'x'"}))
                  ->last);
}

TEST(Traceback, WhatAnEndingPythonPrintsByItselfIsNoSignThatItWentOn) {
  const std::vector<std::vector<std::string>> trailers = {
      {},
      {"", "  of several lines", "\tand more"},
      {"Exception ignored in: <_io.TextIOWrapper name='<stdout>'>",
       "BrokenPipeError: [Errno 32] Broken pipe"},
      {"Error in atexit._run_exitfuncs:", "Traceback (most recent call last):",
       "  File \"c.py\", line 3, in g", "AttributeError: gone"},
      {"Exception in thread Thread-1:", "Traceback (most recent call last):", "  File \"c.py\", line 3, in g",
       "KeyError: 'x'", "", "During handling of the above exception, another exception occurred:", "",
       "Traceback (most recent call last):", "  File \"c.py\", line 4, in g", "EOFError"},
      {"/usr/lib/python3.11/multiprocessing/resource_tracker.py:254: UserWarning: resource_tracker: There "
       "appear "
       "to be 6 leaked semaphore objects",
       "  warnings.warn('resource_tracker: There appear to be %d '"},
      {"[rank0]:[W1130 17:28:50.123 ProcessGroupNCCL.cpp:1250] Warning: WARNING: destroy_process_group() was "
       "not "
       "called before program exit"},
      {"[W1130 17:28:50.1 TCPStore.cpp:125] [c10d] recvValue failed",
       "Exception raised from recvBytes at x.hpp:5",
       "frame #0: c10::Error::Error() + 0x98 (0x7f in libc10.so)", "frame #1: <unknown function>"},
      {"CUDA kernel errors might be asynchronously reported at some other API call",
       "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
       "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.", ""},
      {"ncclUnhandledCudaError: Call to CUDA function failed.",
       "Last error:", "Cuda failure 2 'out of memory'"},
      {"sys:1: DeprecationWarning: builtin type swigvarlink has no __module__ attribute"},
      {"wandb: View run at https://x"},
      {"Epoch 1:  10%|#   | 1/10 [00:01<00:09]"}};
  for (const auto& trailer : trailers) {
    const auto found = find_traceback(error_and(trailer));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->error, "RuntimeError: no");
    EXPECT_TRUE(found->last) << (trailer.empty() ? "" : trailer.front());
  }
}

TEST(Traceback, PyTorchNamesTheRankOnlyBeforeWhatNobodyCaught) {
  const auto found =
      find_traceback({"[rank1]: Traceback (most recent call last):", "[rank1]:   File \"a.py\", line 9, in r",
                      "[rank1]: OSError: no", "[rank1]: second line of it", "some library says goodbye"});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->error, "OSError: no");
  EXPECT_TRUE(found->last);
}

TEST(Traceback, OneOfAThreadCountsWhereThereIsNoOther) {
  const auto found = find_traceback({"Exception in thread Thread-1:", "Traceback (most recent call last):",
                                     "  File \"c.py\", line 3, in g", "KeyError: 'x'"});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->error, "KeyError: 'x'");
}

TEST(Traceback, WordsThatOnlyLookLikeTheHeadingOfOneAreNone) {
  for (const char* heading : {"Process 0 has these settings:", "Process SpawnProcess-1:"}) {
    EXPECT_FALSE(find_traceback({heading, "lr 0.1", "bye"})) << heading;
    EXPECT_FALSE(find_traceback(error_and({heading, "lr 0.1"}))->last) << heading;
  }
}

TEST(Traceback, AChildProcessThatDiesWithItsParentIsNotTheCause) {
  const auto found =
      find_traceback(error_and({"Process SpawnProcess-1:", "Traceback (most recent call last):",
                                "  File \"c.py\", line 3, in g", "BrokenPipeError: gone"}));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->error, "RuntimeError: no");
  EXPECT_TRUE(found->last);
}

}  // namespace
}  // namespace muster::agent
