#include "base/error.hpp"

#include <cstring>

namespace muster {

namespace {

std::string shown(char c) {
  if (c == '\n') return "\\n";
  if (c == '\r') return "\\r";
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 0x20 && byte != 0x7f) return {c};
  constexpr const char* kDigits = "0123456789abcdef";
  return {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
}

/// A sentence is one line and moves no cursor, whatever names it quotes.
std::string in_one_line(const std::string& text) {
  std::string line;
  for (const char c : text) line += shown(c);
  return line;
}

}  // namespace

std::string Error::sentence() const {
  std::string text = what;
  if (!why.empty()) text += ": " + why;
  if (!next.empty()) text += "; " + next;
  return in_one_line(text);
}

std::string errno_text(int error_number) {
  const char* name = strerrorname_np(error_number);
  const char* description = strerrordesc_np(error_number);
  if (!name || !description) return "error " + std::to_string(error_number);
  return std::string(description) + " (" + name + ")";
}

Error errno_error(std::string what, int error_number, std::string next) {
  return Error{std::move(what), errno_text(error_number), std::move(next), error_number};
}

void throw_exception_from_error(const Error& error, const boost::source_location&) {
  throw ErrorException(error);
}

}  // namespace muster
