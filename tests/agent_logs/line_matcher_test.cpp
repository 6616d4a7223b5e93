#include "agent/logs/line_matcher.hpp"

#include <gmock/gmock.h>

namespace muster::agent {
namespace {

TEST(LineMatcher, TextsAreFoundAnywhere) {
  const LineMatcher matcher({"NaN", "a,b"});
  EXPECT_TRUE(matcher.matches("loss NaN"));
  EXPECT_TRUE(matcher.matches("a,b"));
  EXPECT_FALSE(matcher.matches("nan"));
  EXPECT_FALSE(LineMatcher({}).matches("anything"));
}

TEST(LineMatcher, J7_ExpressionsAreThoseOfGrep) {
  const auto matcher = LineMatcher::of_regex("^(WARN|ERROR)[^ ]* .*[0-9]{3}$");
  ASSERT_TRUE(matcher);
  EXPECT_TRUE(matcher->matches("ERROR: code 123"));
  EXPECT_FALSE(matcher->matches("an ERROR: code 123"));
  const std::string longer = "ERROR: code 1234";
  EXPECT_TRUE(matcher->matches(std::string_view(longer).substr(0, longer.size() - 1)))
      << "only the view counts";
}

TEST(LineMatcher, AVeryLongLineIsNoTrouble) {
  const auto matcher = LineMatcher::of_regex("(a|b)*c$");
  ASSERT_TRUE(matcher);
  EXPECT_TRUE(matcher->matches(std::string(60'000, 'a') + "c"));
}

TEST(LineMatcher, AWrongExpressionIsNamed) {
  const auto matcher = LineMatcher::of_regex("(a");
  ASSERT_FALSE(matcher);
  EXPECT_THAT(matcher.error().sentence(), ::testing::HasSubstr("'(a'"));
}

}  // namespace
}  // namespace muster::agent
