// Where files may lie that nobody gave a place.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launcher/options.hpp"

namespace muster::launcher {

struct TemporaryPlace {
  std::filesystem::path folder;  ///< absolute; it may be missing or not ours to write to
  std::string named_by = {};     ///< the variable that names it; empty: none does
};

/// In the order in which they are to be tried, as Python's tempfile has it: TMPDIR, TEMP, TMP (an empty one counts as not
/// set), /tmp, /var/tmp, /usr/tmp, the current folder.
std::vector<TemporaryPlace> temporary_places(const Environment& environment);

/// "/no/such, which TMPDIR names (No such file or directory (ENOENT))".
std::string unusable_place(const TemporaryPlace& place, const std::string& why);

}  // namespace muster::launcher
