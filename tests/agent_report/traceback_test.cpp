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

}  // namespace
}  // namespace muster::agent
