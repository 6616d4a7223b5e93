#include "base/error.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace muster {
namespace {

TEST(Error, SentenceHasWhatWhyAndNext) {
  EXPECT_EQ(errno_error("/a/b", ENOENT, "create it").sentence(),
            "/a/b: No such file or directory (ENOENT); create it");
  EXPECT_EQ((Error{"x", "", ""}.sentence()), "x");
}

TEST(Error, ASentenceIsOneLineWhateverItQuotes) {
  EXPECT_EQ((Error{"no\npe", "a\rb", "c"}.sentence()), "no\\npe: a\\rb; c");
  EXPECT_EQ((Error{"\x1b[2J", "tab\t", "\x7f \xc3\xa9"}.sentence()), "\\x1b[2J: tab\\x09; \\x7f \xc3\xa9")
      << "no cursor moves, and names in UTF-8 stay";
}

TEST(Error, ResultThrowsItsSentence) {
  const Result<int> failed = Error{"a", "b"};
  try {
    (void)failed.value();
    FAIL() << "value() of an error must throw";
  } catch (const ErrorException& e) {
    EXPECT_STREQ(e.what(), "a: b");
    EXPECT_EQ(e.error().why, "b");
  }
}

}  // namespace
}  // namespace muster
