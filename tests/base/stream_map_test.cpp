#include "base/stream_map.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(StreamMap, OneNumberIsForAll) {
  EXPECT_EQ(parse_stream_map("0")->of(5), Streams::none);
  EXPECT_EQ(parse_stream_map("1")->of(5), Streams::out);
  EXPECT_EQ(parse_stream_map("2")->of(0), Streams::err);
  EXPECT_EQ(parse_stream_map("3")->of(0), Streams::both);
}

TEST(StreamMap, PairsAreForTheRanksTheyName) {
  const auto map = *parse_stream_map("0:1,1:3,12:2");
  EXPECT_EQ(map.of(0), Streams::out);
  EXPECT_EQ(map.of(1), Streams::both);
  EXPECT_EQ(map.of(12), Streams::err);
  EXPECT_EQ(map.of(2), Streams::none);
}

TEST(StreamMap, WhatIsNoSuchMapIsRefused) {
  for (const char* text :
       {"", "4", "-1", "out", "0:", ":1", "0:4", "0:1,", ",0:1", "0:1,1", "0:1,0:2", "0:1:2", "a:1"})
    EXPECT_FALSE(parse_stream_map(text)) << text;
}

TEST(Streams, AreASet) {
  EXPECT_TRUE(has_out(Streams::both) && has_err(Streams::both));
  EXPECT_TRUE(has_out(Streams::out) && !has_err(Streams::out));
  EXPECT_TRUE(!has_out(Streams::err) && has_err(Streams::err));
  EXPECT_FALSE(has_out(Streams::none) || has_err(Streams::none));
}

}  // namespace
}  // namespace muster
