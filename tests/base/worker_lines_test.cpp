#include "base/worker_lines.hpp"

#include <gmock/gmock.h>

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<WorkerLine> lines_of(const std::string& bytes) { return WorkerLineReader().put(bytes).value(); }

TEST(WorkerLines, TheExampleOfTheGrammar) {
  const std::vector<WorkerLine> said = {HelloLine{1, 2, 0}, ProgressLine{811},
                                        ProgressLine{812},  SaveLine{std::chrono::seconds(30)},
                                        SafeLine{812},      DoneLine{}};
  std::string text;
  for (const WorkerLine& line : said) text += worker_line(line);
  EXPECT_EQ(text, "hello 1 2 0\nprogress 811\nprogress 812\nsave 30000\nsafe 812\ndone\n");
  EXPECT_EQ(lines_of(text), said);
}

TEST(WorkerLines, MayBeCutAnywhere) {
  const std::string text = "hello 1 2 0\nprogress 9223372036854775807\n";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    WorkerLineReader reader;
    auto lines = reader.put(text.substr(0, cut)).value();
    for (const auto& line : reader.put(text.substr(cut)).value()) lines.push_back(line);
    EXPECT_THAT(lines, ElementsAre(WorkerLine(HelloLine{1, 2, 0}), WorkerLine(ProgressLine{INT64_MAX})))
        << cut;
  }
}

TEST(WorkerLines, WordsOfANewerPeerArePassedOver) {
  EXPECT_THAT(lines_of("collective all_reduce 7\n\nsafe 3\n"), ElementsAre(WorkerLine(SafeLine{3})));
  EXPECT_THAT(lines_of("progres"), IsEmpty());
}

TEST(WorkerLines, WrongNumbersAndEndlessLinesBreakTheConnection) {
  for (const char* text : {"progress\n", "progress \n", "progress x\n", "progress -1\n", "progress 1 2\n",
                           "progress 9223372036854775808\n", "hello 1 2\n", "hello 1 2 3 4\n",
                           "hello 1 2 -3\n", "save 1.5\n", "safe  1\n", "done 1\n"}) {
    const auto refused = WorkerLineReader().put(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_THAT(refused.error().sentence(), HasSubstr("wrong numbers"));
  }
  EXPECT_FALSE(WorkerLineReader().put(std::string(kMaxWorkerLine, 'x')));
  EXPECT_FALSE(WorkerLineReader().put(std::string(kMaxWorkerLine, 'x') + "\n"));
  EXPECT_TRUE(WorkerLineReader().put(std::string(kMaxWorkerLine - 1, 'x') + "\n"));
}

}  // namespace
}  // namespace muster
