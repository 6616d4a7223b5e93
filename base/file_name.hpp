// Any text as the name of a file or a folder. Pure.
#pragma once

#include <cctype>
#include <string>

namespace muster {

/// What is not a letter, a digit, '.', '_' or '-' becomes '_', and the name is neither empty nor hidden.
inline std::string file_name_of(std::string text) {
  for (char& byte : text) {
    const bool plain =
        std::isalnum(static_cast<unsigned char>(byte)) || byte == '.' || byte == '_' || byte == '-';
    if (!plain) byte = '_';
  }
  if (text.empty() || text[0] == '.') text.insert(0, "_");
  return text;
}

}  // namespace muster
