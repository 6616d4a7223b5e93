#include "agent/logs/last_lines.hpp"

#include <gmock/gmock.h>

#include "agent/logs/lines.hpp"

namespace muster::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(LastLines, KeepsTheNewestOldestFirst) {
  LastLines last(2);
  for (const char* line : {"a\n", "b\n", "c\n"}) last.add(line);
  EXPECT_THAT(last.lines(), ElementsAre("b", "c"));
}

TEST(LastLines, AProgressBarDoesNotPushMessagesOut) {
  LastLines last(3);
  last.add("Traceback\n");
  for (int step = 0; step < 100; ++step) last.add("step " + std::to_string(step) + "\r");
  last.add("done\n");
  EXPECT_THAT(last.lines(), ElementsAre("Traceback", "done"));
}

TEST(LastLines, ABlankLineAfterABarKeepsItsLastState) {
  LastLines last(3);
  last.add(" 99%\r");
  last.add("\n");
  last.add("next\n");
  EXPECT_THAT(last.lines(), ElementsAre(" 99%", "next"));
}

TEST(LastLines, CutsVeryLongLines) {
  LastLines last(1);
  last.add(std::string(100'000, 'x') + "\n");
  EXPECT_EQ(last.lines().at(0).size(), LastLines::kMaxBytesPerLine);
}

TEST(LastLines, ManyTogetherAreAsOneByOne) {
  for (const std::string text :
       {"a\nb\nc\nd\ne", "a\nb\nc\nd\n", "\n\n\n\n", "a\n50%\r60%\rdone\nb\nc\n", "x", "a\n\n\nb\n\n\n"}) {
    LastLines one_by_one(3), together(3);
    for (LastLines* last : {&one_by_one, &together}) last->add("before\n");
    for (LastLines* last : {&one_by_one, &together}) last->add("10%\r");
    LineSplitter splitter(1000);
    splitter.feed(text, [&](std::string_view line) { one_by_one.add(line); });
    splitter.flush([&](std::string_view line) { one_by_one.add(line); });
    together.add_all(text);
    EXPECT_EQ(together.lines(), one_by_one.lines()) << text;
  }
}

TEST(LastLines, ZeroKeepsNothing) {
  LastLines last(0);
  last.add("a\n");
  EXPECT_THAT(last.lines(), IsEmpty());
}

}  // namespace
}  // namespace muster::agent
