// Files that a user writes and that are read whole.
#pragma once

#include <string>

#include "base/error.hpp"

namespace muster::launcher {

/// At most 1 MiB: of what is longer, or never ends, no more is read. Pipes are fine, folders are an error. `meant`: what such
/// a file is, for the error.
Result<std::string> read_small_file(const std::string& path, const char* meant);

}  // namespace muster::launcher
