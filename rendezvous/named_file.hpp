// For command lines: an option that names a file.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace muster::rendezvous {

/// Refuses an empty name: most likely a script's variable that was not set, and going without what the file holds (a
/// token, a certificate) is not what was meant.
inline CLI::Validator named_file() {
  const auto check = [](std::string& name) -> std::string {
    return name.empty() ? "it is empty: name a file, or leave it out" : "";
  };
  return CLI::Validator(check, "", "named_file");
}

}  // namespace muster::rendezvous
