// "00 ce f7" for tests: the bytes as the protocol's tables write them.
#pragma once

#include <fmt/format.h>

#include <sstream>
#include <string>
#include <string_view>

namespace muster::rendezvous {

inline std::string from_hex(const std::string& text) {
  std::istringstream in(text);
  std::string bytes;
  for (unsigned byte; in >> std::hex >> byte;) bytes.push_back(static_cast<char>(byte));
  return bytes;
}

inline std::string to_hex(std::string_view bytes) {
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{}{:02x}", text.empty() ? "" : " ", byte);
  return text;
}

}  // namespace muster::rendezvous
