#include "agent/logs/line_collapse.hpp"

#include <gmock/gmock.h>

#include <random>

#include "base/ranks.hpp"

namespace muster::agent {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Instant kStart{};

std::vector<std::string> taken(LineCollapse& lines, Instant now) {
  std::vector<std::string> texts;
  for (const auto& line : lines.take(now)) texts.push_back(ranks_text(line.workers) + ": " + line.text);
  return texts;
}

TEST(LineCollapse, J6_WhatAllSayIsHandedOnOnceAndAtOnce) {
  LineCollapse lines({0, 1, 2}, {});
  for (const int worker : {1, 0}) lines.add(worker, "warning", kStart);
  EXPECT_THAT(taken(lines, kStart), IsEmpty());
  lines.add(2, "warning", kStart + 50ms);
  EXPECT_THAT(taken(lines, kStart + 50ms), ElementsAre("ranks 0-2: warning"));
  EXPECT_FALSE(lines.wake_at());
}

TEST(LineCollapse, OthersAreWaitedForDuringTheWindowOnly) {
  LineCollapse lines({0, 1, 2}, {});
  lines.add(0, "a", kStart);
  lines.add(1, "a", kStart + 100ms);
  EXPECT_EQ(lines.wake_at(), kStart + 200ms);
  EXPECT_THAT(taken(lines, kStart + 199ms), IsEmpty());
  EXPECT_THAT(taken(lines, kStart + 200ms), ElementsAre("ranks 0-1: a"));
  lines.add(2, "a", kStart + 250ms);
  EXPECT_THAT(taken(lines, kStart + 450ms), ElementsAre("rank 2: a"));
}

TEST(LineCollapse, NobodyWaitsForOneThatEnded) {
  LineCollapse lines({0, 1}, {});
  lines.add(0, "a", kStart);
  lines.ended(1);
  EXPECT_THAT(taken(lines, kStart), ElementsAre("rank 0: a"));
  lines.add(0, "b", kStart);
  lines.ended(0);
  EXPECT_THAT(taken(lines, kStart), ElementsAre("rank 0: b"));
}

TEST(LineCollapse, ALineThatOneSaysTwiceIsHandedOnTwice) {
  LineCollapse lines({0, 1}, {});
  for (const int worker : {0, 0, 1}) lines.add(worker, "again", kStart);
  EXPECT_THAT(taken(lines, kStart + 1s), ElementsAre("ranks 0-1: again", "rank 0: again"));
}

TEST(LineCollapse, EachOnesLinesKeepTheirOrder) {
  LineCollapse lines({0, 1}, {});
  for (const char* text : {"a", "b"}) lines.add(0, text, kStart);
  for (const char* text : {"b", "a"}) lines.add(1, text, kStart);
  EXPECT_THAT(taken(lines, kStart + 1s), ElementsAre("rank 0: a", "ranks 0-1: b", "rank 1: a"));
}

TEST(LineCollapse, J6_ALineAfterOnesOwnIsStillMadeOne) {
  LineCollapse lines({0, 1, 2}, {});
  for (const int worker : {0, 1, 2}) {
    for (const char* own : {"start ", "loaded "}) lines.add(worker, own + std::to_string(worker), kStart);
    lines.add(worker, "warning", kStart);
    lines.add(worker, "ready " + std::to_string(worker), kStart);
    lines.add(worker, "warning", kStart);
  }
  EXPECT_THAT(taken(lines, kStart + 1s),
              ElementsAre("rank 0: start 0", "rank 0: loaded 0", "rank 1: start 1", "rank 1: loaded 1",
                          "rank 2: start 2", "rank 2: loaded 2", "ranks 0-2: warning", "rank 0: ready 0",
                          "rank 1: ready 1", "rank 2: ready 2", "ranks 0-2: warning"));
}

TEST(LineCollapse, ALineBeforeWhichOthersMoveIsNotHandedOnLater) {
  LineCollapse lines({0, 1}, {});
  lines.add(0, "warning", kStart);
  lines.add(1, "start", kStart + 100ms);
  lines.add(1, "warning", kStart + 150ms);
  EXPECT_THAT(taken(lines, kStart + 199ms), IsEmpty());
  EXPECT_EQ(lines.wake_at(), kStart + 200ms);
  EXPECT_THAT(taken(lines, kStart + 200ms), ElementsAre("rank 1: start", "ranks 0-1: warning"));
}

TEST(LineCollapse, NoLineMovesBeforeOneThatIsSharedWithOthers) {
  LineCollapse lines({0, 1}, {});
  for (const char* text : {"a", "b", "c"}) lines.add(0, text, kStart);
  for (const char* text : {"b", "own", "a", "c"}) lines.add(1, text, kStart);
  EXPECT_THAT(taken(lines, kStart + 1s),
              ElementsAre("rank 0: a", "ranks 0-1: b", "rank 1: own", "rank 1: a", "ranks 0-1: c"));
}

TEST(LineCollapse, MemoryIsBounded) {
  LineCollapse lines({0, 1}, {1h, 1000});
  std::size_t count = 0;
  for (int number = 0; number < 1000; ++number) {
    lines.add(0, std::to_string(number) + std::string(96, 'x'), kStart);
    count += lines.take(kStart).size();
  }
  EXPECT_GE(count, 980u);
}

// Before, each of them was looked for among all that waited.
TEST(LineCollapse, J6_ManyEqualLinesOfOneTakeNoTimeThatGrowsWithThem) {
  LineCollapse lines({0, 1}, {1h, 100'000'000});
  const auto begin = std::chrono::steady_clock::now();
  for (int number = 0; number < 200'000; ++number) lines.add(0, "again", kStart);
  for (int number = 0; number < 200'000; ++number) lines.add(1, "again", kStart);
  EXPECT_EQ(lines.take(kStart).size(), 200'000u);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
}

TEST(LineCollapse, NothingIsLostOrReorderedWhateverComes) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    LineCollapse lines({0, 1, 2, 3}, {10ms, 200});
    std::map<int, std::vector<std::string>> written, seen;
    const auto see = [&](Instant now) {
      for (const auto& line : lines.take(now))
        for (const int worker : line.workers) seen[worker].push_back(line.text);
    };
    for (int step = 0; step < 300; ++step) {
      const int worker = static_cast<int>(random() % 4);
      const std::string text(1 + random() % 3, static_cast<char>('a' + random() % 3));
      lines.add(worker, text, kStart + step * 1ms);
      written[worker].push_back(text);
      if (random() % 4 == 0) see(kStart + step * 1ms);
    }
    see(Instant::max());
    ASSERT_EQ(seen, written) << "seed " << seed;
  }
}

}  // namespace
}  // namespace muster::agent
