// How the words of a command line become options and a program: argparse's rules, which torchrun's users know. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "launcher/option_table.hpp"

namespace muster::launcher {

struct GivenOption {
  const OptionRow* row = nullptr;
  std::string value;  ///< a flag's is "1"
};

struct CommandLine {
  std::vector<GivenOption> options;  ///< in their order
  std::vector<std::string> program;  ///< and its arguments, untouched
};

/// The first word that is no option begins the program, and nothing after it is looked at. The first "--" goes, be
/// it before the program or right after it.
///
/// Options are "--name value", "--name=value", "-mr3", "-r=3". Long names may be cut short: an exact name comes
/// first, then the only option of torchrun's that begins so, then the only one of ours; hyphens and underscores are
/// the same. A value may begin with a hyphen only as a number, with a blank in it, or after "=".
///
/// The error is the user's and names the option.
Result<CommandLine> read_command_line(const std::vector<std::string>& words);

/// An option's row by its name, cut short or not, without a value. The error says what it may mean.
Result<const OptionRow*> find_option(const std::string& name);

extern const char* const kSeeHelp;

}  // namespace muster::launcher
