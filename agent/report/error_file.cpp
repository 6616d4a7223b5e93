// The error file in torchrun's format:
//
//   file    = { "message": message, ... }
//   message = text | { "message": text, "extraInfo": { "py_callstack": text, "timestamp": text }, ... }
//
// and beyond torchrun's, in extraInfo: "permanent": true from a worker that knows that trying again cannot help.
//
// Anybody may have written it, so each part may be missing or of another type.
#include <fstream>
#include <nlohmann/json.hpp>

#include "agent/report/report.hpp"

namespace muster::agent {

namespace {

constexpr std::size_t kMaxFileBytes = 1024 * 1024;
constexpr std::size_t kMaxMessageBytes = 32 * 1024;  // it travels to the other nodes

// A traceback ends with what happened.
std::string end_of(std::string text) {
  if (text.size() <= kMaxMessageBytes) return text;
  text.erase(0, text.size() - kMaxMessageBytes);
  const auto line = text.find('\n');
  return line == std::string::npos || line + 1 == text.size() ? text : text.substr(line + 1);
}

std::optional<std::string> text_at(const nlohmann::json& object, const char* key) {
  if (!object.is_object()) return std::nullopt;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return std::nullopt;
  auto text = found->get<std::string>();
  if (text.empty()) return std::nullopt;
  return text;
}

// The call stack of a writer that did not end it with what happened, as a traceback does, is ended so.
std::string with_message(std::string stack, std::string message) {
  const auto end =
      message.find_last_not_of(" \t\r\n:");  // of an exception without a text Python itself says "KeyError"
  message.resize(end == std::string::npos ? 0 : end + 1);
  if (stack.find(message) != std::string::npos) return stack;
  while (!stack.empty() && stack.back() == '\n') stack.pop_back();
  return stack + "\n" + message;
}

}  // namespace

std::optional<ErrorFile> read_error_file(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error) ||
      std::filesystem::file_size(path, error) > kMaxFileBytes)
    return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  const auto json = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (auto plain = text_at(json, "message")) return ErrorFile{end_of(std::move(*plain))};
  if (!json.is_object() || !json.contains("message")) return std::nullopt;
  const auto& message = json["message"];
  const auto extra = message.is_object() ? message.value("extraInfo", nlohmann::json()) : nlohmann::json();
  const auto stack = text_at(extra, "py_callstack");
  auto text = text_at(message, "message");
  if (stack) text = with_message(*stack, text.value_or(""));
  if (!text) return std::nullopt;
  return ErrorFile{end_of(std::move(*text)),
                   extra.is_object() && extra.value("permanent", nlohmann::json()) == true};
}

}  // namespace muster::agent
