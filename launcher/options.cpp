#include "launcher/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "launcher/command_line.hpp"
#include "launcher/config.hpp"
#include "launcher/option_table.hpp"
#include "launcher/option_values.hpp"

namespace muster::launcher {

namespace {

// What the user set, and by which name they know it.
struct Set {
  const OptionRow* row;
  std::string name;
  std::vector<std::string> values;
  Origin origin;
};

std::optional<Set> from_flags(const OptionRow& row, const std::vector<GivenOption>& given) {
  Set set{&row, row.long_name, {}, Origin::flag};
  for (const GivenOption& each : given) {
    if (each.row != &row) continue;
    if (!row.adds_up()) set.values.clear();
    set.values.push_back(each.value);
  }
  if (set.values.empty()) return std::nullopt;
  return set;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    if (!line.empty()) lines.push_back(line);
  return lines;
}

std::optional<Set> from_variables(const OptionRow& row, const Environment& environment) {
  for (const std::string name : {row.variable, row.older_variable}) {
    if (name.empty()) continue;
    const auto value = environment(name);
    if (!value) continue;
    const bool in_lines = row.kind == ValueKind::list && !value->empty();
    const auto values = in_lines ? lines_of(*value) : std::vector<std::string>{*value};
    return Set{&row, name, values, Origin::environment};
  }
  return std::nullopt;
}

std::optional<Set> from_file(const OptionRow& row, const ConfigFile& config) {
  const auto found = config.values.find(row.long_name);
  if (found == config.values.end()) return std::nullopt;
  return Set{&row, config.path + ": " + std::string(row.long_name).substr(2), found->second, Origin::file};
}

Result<void> apply(LauncherOptions& options, const Set& set) {
  const std::size_t notes_before = options.notes.size();
  for (const std::string& value : set.values) {
    auto applied = set.row->apply(options, value);
    if (applied && value.empty() && !set.row->may_be_empty)
      applied = not_allowed(value, "leave the option out, or give it a value");
    if (applied) continue;
    Error error = applied.error();
    error.what = set.name;
    return error;
  }
  // The row's notes know it by its option alone.
  for (auto note = options.notes.begin() + static_cast<std::ptrdiff_t>(notes_before);
       note != options.notes.end(); ++note)
    if (note->starts_with(set.row->long_name)) note->replace(0, std::strlen(set.row->long_name), set.name);
  auto& values = options.values[set.row->long_name];
  values.insert(values.end(), set.values.begin(), set.values.end());
  options.origins[set.row->long_name] = set.origin;
  options.names[set.row->long_name] = set.name;
  if (*set.row->no_effect != '\0') options.notes.push_back(set.name + " " + set.row->no_effect);
  return {};
}

// The file that --config or its variable names; an empty one without.
Result<ConfigFile> config_of(const std::vector<GivenOption>& given, const Environment& environment) {
  const OptionRow& row = **find_option("--config");
  auto named = from_flags(row, given);
  if (!named) named = from_variables(row, environment);
  if (!named) return ConfigFile{};
  if (named->values.back().empty())
    return not_allowed_in(named->name, "", "leave the option out, or name a file");
  return read_config(named->values.back());
}

std::string name_of(const std::string& pair) { return pair.substr(0, pair.find('=')); }

// Of the file's values beside those given otherwise: of --env and --rdzv-conf the names that are not given again.
std::optional<Set> what_stays(Set of_file, const Set& given) {
  if (of_file.row->kind == ValueKind::pairs)
    return of_file;  // later ones replace earlier ones where they are read
  if (std::string(of_file.row->long_name) != "--env") return std::nullopt;
  std::erase_if(of_file.values, [&](const std::string& value) {
    return std::any_of(given.values.begin(), given.values.end(),
                       [&](const std::string& other) { return name_of(other) == name_of(value); });
  });
  return of_file;
}

Result<void> apply_all(LauncherOptions& options, const std::vector<GivenOption>& given,
                       const Environment& environment, const ConfigFile& config) {
  for (const OptionRow& row : option_table()) {
    auto set = from_flags(row, given);
    if (!set) set = from_variables(row, environment);
    auto of_file = from_file(row, config);
    if (set && of_file) of_file = what_stays(*of_file, *set);
    for (const auto& each : {of_file, set})
      if (each)
        if (auto applied = apply(options, *each); !applied) return applied;
  }
  return {};
}

// "--rdzv-conf store_port" as "PET_RDZV_CONF store_port" where that is how it was given.
Error as_given(const LauncherOptions& options, Error error) {
  const std::string option = error.what.substr(0, error.what.find(' '));
  if (const auto known_as = options.names.find(option); known_as != options.names.end())
    error.what.replace(0, option.size(), known_as->second);
  return error;
}

bool only_prints(const LauncherOptions& options) {
  return options.help || options.version || options.print_man || !options.print_completion.empty();
}

template <class Wanted>
std::vector<std::string> keys_of(const LauncherOptions& options, Wanted wanted) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : options.rendezvous.conf)
    if (wanted(key)) keys.push_back(key);
  return keys;
}

// One node needs no place to meet others, and an endpoint is one without --master-addr.
std::vector<std::string> names_without_effect(const LauncherOptions& options) {
  const std::vector<std::string> of_a_meeting = {"--rdzv-backend", "--rdzv-endpoint", "--rdzv-conf",
                                                 "--node-rank",    "--master-addr",   "--master-port",
                                                 "--local-addr"};
  const std::vector<std::string> of_a_master = {"--master-addr", "--master-port"};
  std::vector<std::string> idle;
  const bool meets_at_endpoint = options.max_nodes > 1 && !options.rendezvous.endpoint.empty();
  if (options.max_nodes > 1 && !meets_at_endpoint) return idle;
  for (const std::string& name : meets_at_endpoint ? of_a_master : of_a_meeting) {
    const auto known_as = options.names.find(name);
    if (known_as == options.names.end()) continue;
    std::string shown = known_as->second;
    if (name == "--rdzv-conf") {
      const auto keys = keys_of(options, [](const std::string& key) { return is_conf_key(key); });
      if (keys.empty()) continue;  // one node knows all of it
      shown += fmt::format(" {}", fmt::join(keys, ","));
    }
    idle.push_back(shown);
  }
  return idle;
}

Result<void> settle_conf(LauncherOptions& options) {
  auto store = take_store_options(options.rendezvous.conf);
  if (!store) return store.error();
  options.store = *store;
  const auto window = take_restart_window(options.rendezvous.conf);
  if (!window) return window.error();
  options.restart_window = *window;
  return {};
}

// One node needs no place to meet others, whatever is said of one.
Result<void> settle_nodes(LauncherOptions& options, const Environment& environment) {
  options.without_effect = names_without_effect(options);
  if (options.max_nodes == 1) {
    const auto unknown = keys_of(options, [](const std::string& key) { return !is_conf_key(key); });
    if (!unknown.empty()) options.notes.push_back(unknown_keys_text(unknown));
    return {};
  }
  if (options.standalone)
    return Error{"--standalone with --nnodes", "it means one node alone",
                 "leave one of them out, and name a --rdzv-endpoint for several nodes"};
  auto meeting = make_meeting(options.rendezvous, options.min_nodes, options.max_nodes);
  if (!meeting) return meeting.error();
  options.meeting = std::move(*meeting);
  for (const char* file : rendezvous::kFileVariables)
    if (environment(file) == "") return Error{file, "it is empty", "name a file, or unset it"};
  if (options.meeting->token_file.empty())
    options.meeting->token_file = environment("MUSTER_TOKEN_FILE").value_or("");
  auto& tls = options.meeting->tls;
  if (!tls.any())
    tls = {environment("MUSTER_TLS_CERT").value_or(""), environment("MUSTER_TLS_KEY").value_or(""),
           environment("MUSTER_TLS_CA").value_or("")};
  return {};
}

Result<void> settle_logs(LauncherOptions& options, const Environment& environment) {
  options.logs.variable = [environment](std::string_view name) { return environment(std::string(name)); };
  if (auto checked = agent::check_file_template(options.logs.file, options.logs.variable); !checked) {
    Error error = checked.error();
    error.what = options.names["--log-file"];
    return error;
  }
  if (options.log_dir != "/dev/null") return {};
  for (const char* name :
       {"--log-file", "--log-match", "--duplicate-stdout-filters", "--duplicate-stderr-filters"})
    if (const auto known_as = options.names.find(name); known_as != options.names.end())
      options.notes.push_back(known_as->second + " has no effect here: --log-dir=/dev/null keeps no logs");
  return {};
}

// What does not fit together, or is missing.
Result<void> check_program(const LauncherOptions& options) {
  if (options.program.empty() && !options.print_config)
    return Error{"program", "none was given",
                 std::string("usage: muster [options] program [arguments]; ") + kSeeHelp};
  if (!options.program.empty() && options.program[0].empty())
    return Error{"program", "its name is empty", kSeeHelp};
  if (options.no_python && options.module)
    return Error{"--no-python with --module", "a module needs Python", "leave one of them out"};
  if (options.run_path && (options.no_python || options.module))
    return Error{options.no_python ? "--run-path with --no-python" : "--run-path with --module",
                 "it means a script that Python runs", "leave one of them out"};
  return {};
}

}  // namespace

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (!value) return std::nullopt;
    return std::string(value);
  };
}

std::vector<std::string> own_environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry; ++entry) entries.emplace_back(*entry);
  return entries;
}

Result<LauncherOptions> parse_command_line(const std::vector<std::string>& words,
                                           const Environment& environment) {
  auto line = read_command_line(words);
  if (!line) return line.error();
  auto config = config_of(line->options, environment);
  if (!config) return config.error();
  LauncherOptions options;
  if (auto applied = apply_all(options, line->options, environment, *config); !applied)
    return applied.error();
  options.program = std::move(line->program.empty() ? config->program : line->program);
  if (only_prints(options)) return options;
  if (auto checked = check_program(options); !checked) return checked.error();
  if (auto settled = settle_conf(options); !settled) return as_given(options, settled.error());
  if (auto settled = settle_nodes(options, environment); !settled) return as_given(options, settled.error());
  if (auto settled = settle_logs(options, environment); !settled) return settled.error();
  return options;
}

}  // namespace muster::launcher
