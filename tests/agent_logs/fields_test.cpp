#include "agent/logs/fields.hpp"

#include <gtest/gtest.h>

namespace muster::agent {
namespace {

std::string filled(std::string_view text) {
  return fill_fields(
      text,
      [](std::string_view name) { return name == "rank" ? std::optional<std::string>("3") : std::nullopt; },
      [](std::string_view name) {
        return name == "JOB" ? std::optional<std::string>("a{rank}$JOB") : std::nullopt;
      });
}

TEST(Fields, BracesAndDollarsAreAskedApart) {
  EXPECT_EQ(filled("{rank}-${JOB}-$JOB."), "3-a{rank}$JOB-a{rank}$JOB.")
      << "what is put in is not looked at again";
  EXPECT_EQ(filled("{JOB} ${rank}"), "{JOB} ${rank}");
}

TEST(Fields, WhatIsNoFieldStays) {
  for (const char* text :
       {"", "{", "}", "$", "{}", "${}", "{ rank}", "{1}", "$1", "{rank", "${JOB", "a$", "%d {x}"})
    EXPECT_EQ(filled(text), text);
  EXPECT_EQ(filled("{{rank}}"), "{3}");
}

TEST(Fields, TwoDollarsAreOne) { EXPECT_EQ(filled("$$JOB $${rank}"), "$JOB $3"); }

}  // namespace
}  // namespace muster::agent
