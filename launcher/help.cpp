#include "launcher/help.hpp"

#include <fmt/format.h>

#include "launcher/option_table.hpp"

namespace muster::launcher {

namespace {

constexpr const char* kIntroduction =
    R"(usage: muster [options] program [arguments]

Starts the program several times ("workers"), tells each its rank through the variables torchrun gives,
restarts all of them when one fails, and ends them all when it ends. A program that is executable is run
directly, a .py file by Python (PYTHON_EXEC, the active virtual environment's, or python3). All that
follows the program is its own. Underscores may replace hyphens in options, and a long name may be cut short; the
variable in brackets stands in for an option that is not given, and a file (--config) for both.
)";

std::string line_of(const OptionRow& row) {
  std::string names = *row.short_name ? fmt::format("{}, {}", row.short_name, row.long_name) : row.long_name;
  if (!row.is_flag()) names += std::string(" ") + row.value_name;
  const std::string fallback = *row.fallback ? fmt::format(" ({})", row.fallback) : "";
  const std::string variable = *row.variable ? fmt::format(" [{}]", row.variable) : "";
  return fmt::format("  {:<22} {}{}{}\n", names, row.help, fallback, variable);
}

}  // namespace

std::string help_text() {
  std::string text = kIntroduction;
  std::string last_heading;
  for (const OptionRow& row : option_table()) {
    if (heading(row.section) != last_heading) text += fmt::format("\n{}:\n", heading(row.section));
    last_heading = heading(row.section);
    text += line_of(row);
  }
  text +=
      "\nExit code: 0, or the first failing worker's (128 + n for signal n); 2 for a wrong command line.\n";
  return text;
}

}  // namespace muster::launcher
