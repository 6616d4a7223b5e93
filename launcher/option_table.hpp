// Every option in one table, from which the parser, the help text and the reading of PET_ variables are made.
#pragma once

#include <span>
#include <string>

#include "launcher/options.hpp"

namespace muster::launcher {

struct OptionRow {
  const char* short_name;  ///< "-m", or empty
  const char* long_name;   ///< "--nproc-per-node"; the underscore spelling follows from it
  const char* variable;    ///< "PET_NPROC_PER_NODE", or empty
  const char* value_name;  ///< empty: a flag without a value
  const char* help;
  /// Stores a value (a flag's is "1" or "0"). The error's `what` is left to the caller, who knows whether the
  /// option or the variable was used.
  Result<void> (*apply)(LauncherOptions&, const std::string& value);

  bool merges = false;  ///< given several times, the values are joined by commas; else the last one counts

  bool is_flag() const { return *value_name == '\0'; }
};

std::span<const OptionRow> option_table();

}  // namespace muster::launcher
