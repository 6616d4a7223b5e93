// What is printed from the option table for shells and for man. That bash really completes and that man really reads
// the page is tested with the real programs: tests/system/command_line_test.py.
#include <gmock/gmock.h>

#include "launcher/completion.hpp"
#include "launcher/man_page.hpp"
#include "launcher/option_table.hpp"
#include "tests/support/temporary_folder.hpp"

namespace muster::launcher {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string escaped(const std::string& name) {
  std::string text;
  for (const char byte : name) text += byte == '-' ? "\\-" : std::string(1, byte);
  return text;
}

TEST(Pages, NameEveryOption) {
  const auto page = man_page("1.2.3");
  const auto bash = completion_for("bash");
  const auto zsh = completion_for("zsh");
  for (const OptionRow& row : option_table()) {
    EXPECT_THAT(page, HasSubstr("\\fB" + escaped(row.long_name) + "\\fR"));
    EXPECT_THAT(page, HasSubstr(row.variable));
    EXPECT_THAT(bash, HasSubstr(row.long_name));
    EXPECT_THAT(zsh, HasSubstr(std::string(row.long_name) + (row.is_flag() ? "[" : "=[")));
  }
  for (const auto& text : {page, bash, zsh}) EXPECT_THAT(text, Not(HasSubstr("@")));
}

TEST(Pages, EachHeadingComesOnce) {
  std::vector<Section> sections;
  for (const OptionRow& row : option_table())
    if (sections.empty() || sections.back() != row.section) sections.push_back(row.section);
  std::sort(sections.begin(), sections.end());
  EXPECT_EQ(std::adjacent_find(sections.begin(), sections.end()), sections.end());
}

// The row of the page's table that begins with the option, or names it beside another.
std::string row_of(const std::string& page, const std::string& option) {
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("| `") &&
        line.substr(0, line.find(" |", 2)).find("`" + option + "`") != std::string::npos)
      return line;
  return "";
}

// docs/torchrun.md says of each of torchrun's options what it is here, and of each variable.
TEST(Pages, TheComparisonWithTorchrunIsWholeAndTrue) {
  const auto page = test::content(MUSTER_SOURCE_DIR "/docs/torchrun.md");
  for (const OptionRow& row : option_table()) {
    if (!row.of_torchrun) continue;
    const std::string line = row_of(page, row.long_name);
    EXPECT_NE(line, "") << row.long_name;
    const bool works = std::string(row.no_effect).find("yet") == std::string::npos;
    EXPECT_EQ(line.find("not yet") == std::string::npos, works)
        << row.long_name
        << ": the page must say 'not yet' exactly while the option table says that it has no effect yet";
    for (const std::string variable : {row.variable, row.older_variable})
      EXPECT_TRUE(variable.empty() || page.find("`" + variable + "`") != std::string::npos) << variable;
  }
}

TEST(Pages, ManKnowsTheVersionAndNoLineIsTakenForAMacro) {
  const auto page = man_page("1.2.3");
  EXPECT_THAT(page, ::testing::StartsWith(".TH MUSTER 1 \"\" \"muster 1.2.3\""));
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) EXPECT_TRUE(line.empty() || line[0] != '\'') << line;
}

TEST(Pages, TheCompletionForZshMayBeSourcedOrLieOnFpath) {
  const auto zsh = completion_for("zsh");
  EXPECT_THAT(zsh, ::testing::StartsWith("#compdef muster torchrun\n"));
  const auto from_fpath = zsh.find("loadautofunc ]]; then\n  _muster\nelse\n");
  EXPECT_NE(from_fpath, std::string::npos);
  EXPECT_NE(zsh.find("  compdef _muster muster torchrun\nfi\n", from_fpath), std::string::npos);
}

TEST(Pages, EachSpecificationForZshIsOneQuotedWord) {
  std::istringstream lines(completion_for("zsh"));
  for (std::string line; std::getline(lines, line);) {
    std::string rest = line;
    for (auto at = rest.find("'\\''"); at != std::string::npos; at = rest.find("'\\''")) rest.erase(at, 4);
    EXPECT_EQ(std::count(rest.begin(), rest.end(), '\'') % 2, 0) << line;
  }
}

}  // namespace
}  // namespace muster::launcher
