#include "agent/logs/lines.hpp"

#include <gmock/gmock.h>

#include <random>
#include <string>
#include <vector>

namespace muster::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> split(LineSplitter& splitter, std::string_view bytes) {
  std::vector<std::string> lines;
  splitter.feed(bytes, [&](std::string_view line) { lines.emplace_back(line); });
  return lines;
}

TEST(LineSplitter, HandsOnWholeLinesWithTheirEnd) {
  LineSplitter splitter(100);
  EXPECT_THAT(split(splitter, "one\ntwo\nthr"), ElementsAre("one\n", "two\n"));
  EXPECT_THAT(split(splitter, "ee\n\n"), ElementsAre("three\n", "\n"));
  EXPECT_EQ(splitter.waiting_bytes(), 0u);
}

TEST(LineSplitter, FlushGivesTheUnfinishedLineOnce) {
  LineSplitter splitter(100);
  EXPECT_THAT(split(splitter, "no end"), IsEmpty());
  std::vector<std::string> rest;
  const auto sink = [&](std::string_view line) { rest.emplace_back(line); };
  splitter.flush(sink);
  splitter.flush(sink);
  EXPECT_THAT(rest, ElementsAre("no end"));
}

TEST(LineSplitter, TheStatesOfAProgressBarAreLines) {
  LineSplitter splitter(100);
  EXPECT_THAT(split(splitter, "\r 10%\r 20%\r"), ElementsAre("\r", " 10%\r"));
  EXPECT_THAT(split(splitter, " 30%"), ElementsAre(" 20%\r"));
}

TEST(LineSplitter, CarriageReturnAndNewlineAreOneEndAlsoOverTwoReads) {
  LineSplitter splitter(100);
  EXPECT_THAT(split(splitter, "one\r\ntwo\r"), ElementsAre("one\r\n"));
  EXPECT_THAT(split(splitter, "\nthree\n"), ElementsAre("two\r\n", "three\n"));
}

TEST(LineSplitter, ALongLineComesInPieces) {
  LineSplitter splitter(4);
  EXPECT_THAT(split(splitter, "abcdefghij\nk\n"), ElementsAre("abcd", "efgh", "ij\n", "k\n"));
}

TEST(LineSplitter, NeverKeepsMoreThanTheLimit) {
  LineSplitter splitter(16);
  for (int byte = 0; byte < 1000; ++byte) {
    split(splitter, "x");
    ASSERT_LT(splitter.waiting_bytes(), 16u);
  }
}

TEST(LineSplitter, AnyCutOfTheInputGivesTheSameLines) {
  std::mt19937 random(7);
  const std::string alphabet = "ab\n\r\ncdef\r";
  for (int seed = 0; seed < 300; ++seed) {
    std::string input;
    for (int byte = 0; byte < 200; ++byte) input += alphabet[random() % alphabet.size()];
    LineSplitter whole(9);
    const auto expected = split(whole, input);
    LineSplitter pieces(9);
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < input.size();) {
      const std::size_t size = 1 + random() % 12;
      for (auto& line : split(pieces, std::string_view(input).substr(at, size))) lines.push_back(line);
      at += size;
    }
    ASSERT_EQ(lines, expected) << "seed " << seed;
    ASSERT_EQ(pieces.waiting_bytes(), whole.waiting_bytes());
  }
}

TEST(LineSplitter, BlocksAreTheSameLinesTogether) {
  std::mt19937 random(11);
  const std::string alphabet = "ab\n\r\ncdef\r";
  for (int seed = 0; seed < 300; ++seed) {
    LineSplitter splitter(9);
    std::string input, output;
    const auto take = [&](std::string_view block) { output.append(block); };
    for (int piece = 0; piece < 20; ++piece) {
      std::string bytes;
      for (std::size_t size = random() % 40; bytes.size() < size;)
        bytes += alphabet[random() % alphabet.size()];
      input += bytes;
      splitter.feed_blocks(bytes, [&](std::string_view block) {
        take(block);
        ASSERT_TRUE(block.ends_with('\n') || block.ends_with('\r') || block.size() == 9u) << block;
      });
      ASSERT_LE(splitter.waiting_bytes(), 9u);
    }
    splitter.flush(take);
    ASSERT_EQ(output, input) << "seed " << seed;
  }
}

TEST(LineSplitter, BlocksAreNotCut) {
  LineSplitter splitter(100);
  std::vector<std::string> blocks;
  const auto take = [&](std::string_view block) { blocks.emplace_back(block); };
  splitter.feed_blocks("one\ntwo\nthr", take);
  splitter.feed_blocks("ee\nfour\nfive\n", take);
  EXPECT_THAT(blocks, ElementsAre("one\ntwo\n", "three\n", "four\nfive\n"));
}

}  // namespace
}  // namespace muster::agent
