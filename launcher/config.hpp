// The configuration as JSON: what --print-config prints, and what --config reads.
//
//   file    = object
//   name    = an option's long name without its hyphens in front: "nproc-per-node" (or with underscores),
//             or "program": the program and its arguments, for a command line without one
//   value   = true | false      of a flag
//           | number | text     of an option with one value, as on the command line
//           | [value, ...]      of an option that may be repeated; or values that the command line parts by commas
//           | {name: value}     of --env and --rdzv-conf
//           | null              as if it were not there
//
// Comments (// and /* */) are passed over. What is equal to the default counts as not given.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "launcher/options.hpp"

namespace muster::launcher {

struct ConfigFile {
  std::string path;                                        ///< for messages
  std::map<std::string, std::vector<std::string>> values;  ///< by long name, as for the command line
  std::vector<std::string> program;
};

/// At most 1 MiB.
Result<ConfigFile> read_config(const std::string& path);
/// The same from its text.
Result<ConfigFile> parse_config(const std::string& path, const std::string& text);

/// The effective configuration, each option of the table in its order: the same bytes for the same settings,
/// wherever they come from. Values of --env whose name looks secret are left out.
std::string config_text(const LauncherOptions& options);

}  // namespace muster::launcher
