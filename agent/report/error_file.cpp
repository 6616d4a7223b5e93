// The error file in torchrun's format:
//
//   file    = { "message": message, ... }
//   message = text | { "message": text, "extraInfo": { "py_callstack": text, "timestamp": text }, ... }
//
// Anybody may have written it, so each part may be missing or of another type.
#include <fstream>
#include <nlohmann/json.hpp>

#include "agent/report/report.hpp"

namespace muster::agent {

namespace {

constexpr std::size_t kMaxFileBytes = 1024 * 1024;

std::optional<std::string> text_at(const nlohmann::json& object, const char* key) {
  if (!object.is_object()) return std::nullopt;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return std::nullopt;
  auto text = found->get<std::string>();
  if (text.empty()) return std::nullopt;
  return text;
}

}  // namespace

std::optional<std::string> read_error_file(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error) ||
      std::filesystem::file_size(path, error) > kMaxFileBytes)
    return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  const auto json = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (const auto plain = text_at(json, "message")) return plain;
  if (!json.is_object() || !json.contains("message")) return std::nullopt;
  const auto& message = json["message"];
  if (message.is_object() && message.contains("extraInfo"))
    if (const auto stack = text_at(message["extraInfo"], "py_callstack")) return stack;
  return text_at(message, "message");
}

}  // namespace muster::agent
