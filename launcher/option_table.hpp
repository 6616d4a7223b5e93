// Every option in one table, from which the parser, the reading of variables and of the configuration file, the
// help text, the manual page and the shells' completion are made.
#pragma once

#include <span>
#include <string>

#include "launcher/options.hpp"

namespace muster::launcher {

/// The headings of the help text, in their order.
enum class Section { job, rendezvous, program, logs, stopping, placement, information, without_effect };
const char* heading(Section section);

/// What a value is: for --print-config, the configuration file and completion.
enum class ValueKind {
  flag,    ///< no value
  number,  ///< a number, or a word in its place
  time,    ///< seconds, or a number with a unit
  text,
  file,
  folder,
  pairs,  ///< K=V,K=V; given several times, all count
  list,   ///< given several times, all count, each as it is; in a variable they are lines
};

struct OptionRow {
  const char* short_name = "";  ///< "-m", or empty
  const char* long_name = "";   ///< "--nproc-per-node"; the underscore spelling follows from it
  const char* variable = "";    ///< "PET_NPROC_PER_NODE", "MUSTER_..." for options of our own; or empty
  const char* older_variable =
      "";                   ///< read when `variable` is not set: a name of torchrun's without an option
  bool of_torchrun = true;  ///< else ours alone: abbreviations of torchrun's options come before it
  Section section = Section::job;
  ValueKind kind = ValueKind::text;
  const char* value_name = "";  ///< "N"
  const char* words = "";       ///< values that are allowed or usual, parted by blanks, for completion
  const char* fallback = "";    ///< the default as a user would write it; empty: none, or said in `help`
  bool may_be_empty = false;    ///< an empty value means something; else it is a variable that was not set
  const char* help = "";
  const char* no_effect =
      "";  ///< why it changes nothing here, for the line that says so; empty: it has an effect
  /// Stores a value (a flag's is "1" or "0"). The error's `what` is left to the caller, who knows whether the
  /// option, the variable or the file was used.
  Result<void> (*apply)(LauncherOptions&, const std::string& value) = nullptr;

  bool is_flag() const { return kind == ValueKind::flag; }
  /// Given several times, all values count; else the last one does.
  bool adds_up() const { return kind == ValueKind::pairs || kind == ValueKind::list; }
};

std::span<const OptionRow> option_table();

/// "--nproc_per_node".
std::string with_underscores(std::string long_name);

}  // namespace muster::launcher
