#include "agent/logs/fields.hpp"

#include <cctype>

namespace muster::agent {

namespace {

// Of the name at the beginning of `text`; 0 if there is none.
std::size_t name_length(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size()) {
    const auto byte = static_cast<unsigned char>(text[length]);
    const bool fits = std::isalpha(byte) || byte == '_' || (length > 0 && std::isdigit(byte));
    if (!fits) break;
    ++length;
  }
  return length;
}

// "{name}" at the beginning of `text`, without its braces; empty if there is none.
std::string_view braced_name(std::string_view text) {
  if (text.empty() || text[0] != '{') return {};
  const std::size_t length = name_length(text.substr(1));
  if (length == 0 || text.substr(1 + length, 1) != "}") return {};
  return text.substr(1, length);
}

struct Field {
  std::string_view name;
  std::size_t length = 0;  // of all that is written for it; 0: there is no field here
  bool after_dollar = false;
};

Field field_at(std::string_view text) {
  if (const auto name = braced_name(text); !name.empty()) return {name, name.size() + 2, false};
  if (text[0] != '$') return {};
  if (const auto name = braced_name(text.substr(1)); !name.empty()) return {name, name.size() + 3, true};
  const std::size_t length = name_length(text.substr(1));
  return {text.substr(1, length), length == 0 ? 0 : length + 1, true};
}

}  // namespace

std::string fill_fields(std::string_view text, const FieldText& in_braces, const FieldText& after_dollar) {
  std::string filled;
  while (!text.empty()) {
    if (text.starts_with("$$")) {
      filled += '$';
      text.remove_prefix(2);
      continue;
    }
    const Field field = field_at(text);
    const std::size_t length = field.length == 0 ? 1 : field.length;
    const auto value =
        field.length == 0 ? std::nullopt : (field.after_dollar ? after_dollar : in_braces)(field.name);
    filled += value ? *value : std::string(text.substr(0, length));
    text.remove_prefix(length);
  }
  return filled;
}

}  // namespace muster::agent
