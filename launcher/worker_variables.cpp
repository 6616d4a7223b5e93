#include "launcher/worker_variables.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>
#include <string_view>

#include "launcher/small_file.hpp"
#include "launcher/text.hpp"

namespace muster::launcher {

namespace {

// docs/torchrun.md lists them.
constexpr std::array<std::string_view, 20> kOurs = {"RANK",
                                                    "LOCAL_RANK",
                                                    "GROUP_RANK",
                                                    "ROLE_RANK",
                                                    "ROLE_NAME",
                                                    "LOCAL_WORLD_SIZE",
                                                    "WORLD_SIZE",
                                                    "GROUP_WORLD_SIZE",
                                                    "ROLE_WORLD_SIZE",
                                                    "MASTER_ADDR",
                                                    "MASTER_PORT",
                                                    "TORCHELASTIC_RESTART_COUNT",
                                                    "TORCHELASTIC_MAX_RESTARTS",
                                                    "TORCHELASTIC_RUN_ID",
                                                    "TORCHELASTIC_USE_AGENT_STORE",
                                                    "TORCHELASTIC_ERROR_FILE",
                                                    "MUSTER_ROUND",
                                                    "MUSTER_NODE",
                                                    "MUSTER_CHANNEL",
                                                    "MUSTER_AGENT"};

constexpr std::array<std::string_view, 7> kSecretParts = {"SECRET", "TOKEN",      "PASSWORD", "PASSWD",
                                                          "_KEY",   "CREDENTIAL", "APIKEY"};

std::string name_of(const std::string& entry) { return entry.substr(0, entry.find('=')); }

bool is_name(const std::string& name) {
  const auto plain = [](unsigned char byte) { return byte > 0x20 && byte != 0x7f; };
  return !name.empty() && std::all_of(name.begin(), name.end(), plain);
}

bool is_scrubbed(const std::string& name, const VariableChanges& changes) {
  return std::any_of(changes.scrubbed.begin(), changes.scrubbed.end(),
                     [&](const std::string& glob) { return ::fnmatch(glob.c_str(), name.c_str(), 0) == 0; });
}

bool is_added(const std::string& name, const VariableChanges& changes) {
  return std::any_of(changes.added.begin(), changes.added.end(),
                     [&](const auto& each) { return each.first == name; });
}

}  // namespace

Result<void> add_variable(VariableChanges& changes, const std::string& text) {
  const auto equals = text.find('=');
  const std::string name = text.substr(0, equals);
  if (equals == std::string::npos || !is_name(name) || text.find('\0') != std::string::npos)
    return Error{"", fmt::format("'{}' is not allowed", without_secret(text)), "it takes NAME=VALUE"};
  if (std::find(kOurs.begin(), kOurs.end(), name) != kOurs.end())
    return Error{"", fmt::format("'{}' is not allowed", name), "each worker gets its own from muster"};
  if (looks_secret(name) && text.substr(equals + 1) == kHiddenValue)
    return Error{"", fmt::format("the value of {} was left out where this was printed", name),
                 "set it in the environment, or in a file with --env-file"};
  changes.added.emplace_back(name, text.substr(equals + 1));
  return {};
}

Result<void> add_variables_of(VariableChanges& changes, const std::filesystem::path& path) {
  const auto text = read_small_file(path.string(), "it takes a file of NAME=VALUE lines");
  if (!text) return Error{"", text.error().what + ": " + text.error().why, text.error().next};
  std::istringstream file(*text);
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (trimmed(line).empty() || trimmed(line).front() == '#') continue;
    const auto added = add_variable(changes, line);
    if (added) continue;
    Error error = added.error();
    error.why = fmt::format("{}, line {}: {}", path.string(), number, error.why);
    return error;
  }
  return {};
}

Result<void> add_scrubbed(VariableChanges& changes, const std::string& globs) {
  for (const std::string& part : parts_of(globs, ',')) {
    const std::string glob = trimmed(part);
    if (!is_name(glob))
      return Error{"", fmt::format("'{}' is not allowed", globs), "it takes names with * and ?"};
    changes.scrubbed.push_back(glob);
  }
  return {};
}

std::vector<std::string> changed(const std::vector<std::string>& inherited, const VariableChanges& changes) {
  std::vector<std::string> entries;
  for (const std::string& entry : inherited) {
    const std::string name = name_of(entry);
    if (!is_scrubbed(name, changes) && !is_added(name, changes)) entries.push_back(entry);
  }
  for (auto each = changes.added.begin(); each != changes.added.end(); ++each) {
    const bool comes_again = std::any_of(each + 1, changes.added.end(),
                                         [&](const auto& later) { return later.first == each->first; });
    if (!comes_again) entries.push_back(each->first + "=" + each->second);
  }
  return entries;
}

std::vector<std::string> scrubbed_names(const std::vector<std::string>& inherited,
                                        const VariableChanges& changes) {
  std::vector<std::string> names;
  for (const std::string& entry : inherited) {
    const std::string name = name_of(entry);
    if (is_scrubbed(name, changes) && !is_added(name, changes)) names.push_back(name);
  }
  return names;
}

bool looks_secret(const std::string& name) {
  std::string upper = name;
  for (char& byte : upper) byte = static_cast<char>(std::toupper(static_cast<unsigned char>(byte)));
  return std::any_of(kSecretParts.begin(), kSecretParts.end(),
                     [&](std::string_view part) { return upper.find(part) != std::string::npos; });
}

std::string without_secret(const std::string& entry) {
  const std::string name = name_of(entry);
  return looks_secret(name) && name.size() < entry.size() ? name + "=" + kHiddenValue : entry;
}

}  // namespace muster::launcher
