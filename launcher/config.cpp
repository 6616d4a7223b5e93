#include "launcher/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/endpoint.hpp"
#include "launcher/option_table.hpp"
#include "launcher/small_file.hpp"
#include "launcher/worker_variables.hpp"

namespace muster::launcher {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kProgram = "program";

// --help and its like say what to do now, not how a job is to be.
bool is_setting(const OptionRow& row) { return row.section != Section::information; }

std::string key_of(const OptionRow& row) { return std::string(row.long_name).substr(2); }

const OptionRow* setting_called(const std::string& key) {
  for (const OptionRow& row : option_table())
    if (is_setting(row) && with_underscores(row.long_name) == with_underscores("--" + key)) return &row;
  return nullptr;
}

// ---- printing

Json seconds(const std::string& value) {
  Duration duration{};
  if (!parse_duration(value, &duration)) return value;
  const double count = std::chrono::duration<double>(duration).count();
  if (count == std::floor(count)) return static_cast<long>(count);
  return count;
}

Json pairs(const std::vector<std::string>& values) {
  std::map<std::string, std::string> conf;
  for (const std::string& value : values)
    static_cast<void>(parse_rendezvous_conf(conf, value));  // checked before
  return conf.empty() ? Json::object() : Json(conf);
}

Json list(const OptionRow& row, const std::vector<std::string>& values) {
  Json array = Json::array();
  const bool variables = std::string(row.long_name) == "--env";
  for (const std::string& value : values) array.push_back(variables ? without_secret(value) : value);
  return array;
}

Json shown(const OptionRow& row, const std::vector<std::string>& values) {
  if (row.kind == ValueKind::pairs) return pairs(values);
  if (row.kind == ValueKind::list) return list(row, values);
  const std::string value = values.empty() ? row.fallback : values.back();
  if (row.kind == ValueKind::flag) return !value.empty() && value.find_first_not_of('0') != std::string::npos;
  if (value.empty()) return nullptr;
  if (row.kind == ValueKind::time) return seconds(value);
  const auto number = parse_integer(value, INT32_MIN, INT32_MAX);
  if (row.kind == ValueKind::number && number) return *number;
  return value;
}

// ---- reading

std::string place_of_byte(const std::string& text, std::size_t byte) {
  const std::string before = text.substr(0, std::min(byte, text.size()));
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const auto last = before.rfind('\n');
  return fmt::format("line {}, column {}", lines + 1,
                     before.size() - (last == std::string::npos ? 0 : last + 1));
}

std::optional<std::string> scalar(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "1" : "0";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number()) return value.dump();
  return std::nullopt;
}

std::optional<std::vector<std::string>> members(const Json& value) {
  std::vector<std::string> texts;
  for (const auto& [name, member] : value.items()) {
    const auto text = scalar(member);
    if (!text) return std::nullopt;
    texts.push_back(value.is_object() ? name + "=" + *text : *text);
  }
  return texts;
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : ",") + text;
  return all;
}

// The values as the command line would have them; none: not of a form that this option takes.
std::optional<std::vector<std::string>> values_of(const OptionRow& row, const Json& value) {
  if (row.is_flag() && !value.is_boolean()) return std::nullopt;
  if (const auto text = scalar(value)) return std::vector<std::string>{*text};
  if (value.is_object() && !row.adds_up()) return std::nullopt;
  auto texts = members(value);
  if (!texts || row.adds_up()) return texts;
  return std::vector<std::string>{joined(*texts)};
}

bool is_default(const OptionRow& row, const std::vector<std::string>& values) {
  if (values.empty()) return true;
  if (row.adds_up()) return false;
  return row.is_flag() ? values.back() == "0" : *row.fallback && values.back() == row.fallback;
}

Result<void> take(ConfigFile& config, const std::string& key, const Json& value) {
  const std::string what = config.path + ": " + key;
  if (value.is_null()) return {};
  if (key == kProgram) {
    const auto words = value.is_array() ? members(value) : std::nullopt;
    if (!words) return Error{what, "not a list of words", "it takes [\"train.py\", \"--lr\", \"0.1\"]"};
    config.program = *words;
    return {};
  }
  const OptionRow* row = setting_called(key);
  if (!row) return Error{what, "there is no such setting", "see muster --print-config"};
  const auto values = values_of(*row, value);
  if (!values) return Error{what, value.dump() + " is not allowed", "see muster --print-config for its form"};
  if (!is_default(*row, *values)) config.values[row->long_name] = *values;
  return {};
}

// Which of two would count is not for the reader to guess; hyphens and underscores make no two.
Result<void> check_unique(const std::string& path, const std::vector<std::string>& keys) {
  std::map<std::string, std::string> seen;
  for (const std::string& key : keys)
    if (const auto [first, added] = seen.emplace(with_underscores("--" + key), key); !added)
      return Error{path + ": " + key,
                   first->second == key ? "it is there twice" : "it is there as " + first->second + " too",
                   "leave one of them out"};
  return {};
}

}  // namespace

Result<ConfigFile> parse_config(const std::string& path, const std::string& text) {
  ConfigFile config;
  config.path = path;
  Json root;
  std::vector<std::string> keys;
  const auto note_key = [&](int depth, Json::parse_event_t event, const Json& parsed) {
    if (depth == 1 && event == Json::parse_event_t::key) keys.push_back(parsed.get<std::string>());
    return true;
  };
  try {
    root = Json::parse(text, note_key, true, true);
  } catch (const Json::parse_error& error) {
    return Error{path, "not JSON in " + place_of_byte(text, error.byte), "see muster --print-config"};
  }
  if (!root.is_object()) return Error{path, "not a JSON object", "see muster --print-config"};
  if (auto unique = check_unique(path, keys); !unique) return unique.error();
  for (const auto& [key, value] : root.items())
    if (auto taken = take(config, key, value); !taken) return taken.error();
  return config;
}

Result<ConfigFile> read_config(const std::string& path) {
  const auto text = read_small_file(path, "a configuration is a few lines of JSON");
  if (!text) return text.error();
  return parse_config(path, *text);
}

std::string config_text(const LauncherOptions& options) {
  Json root = Json::object();
  for (const OptionRow& row : option_table()) {
    if (!is_setting(row)) continue;
    const auto set = options.values.find(row.long_name);
    root[key_of(row)] = shown(row, set == options.values.end() ? std::vector<std::string>{} : set->second);
  }
  root[kProgram] = options.program;
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace muster::launcher
