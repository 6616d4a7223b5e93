#include "launcher/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <deque>

#include "launcher/option_table.hpp"

namespace muster::launcher {

namespace {

const char* const kSeeHelp = "see muster --help";

std::string with_underscores(std::string name) {
  std::replace(name.begin() + 2, name.end(), '-', '_');
  return name;
}

std::string all_names(const OptionRow& row) {
  std::string names = row.long_name;
  if (*row.short_name != '\0') names += std::string(",") + row.short_name;
  const std::string underscored = with_underscores(row.long_name);
  return underscored == row.long_name ? names : names + "," + underscored;
}

// A row with what CLI11 found for it.
struct Found {
  const OptionRow* row;
  CLI::Option* option;
  std::string value;
};

std::deque<Found> declare(CLI::App& app) {
  app.set_help_flag("");    // a row of the table like all others
  app.allow_extras();       // named below, in our own words
  std::deque<Found> found;  // CLI11 keeps references to the values
  for (const OptionRow& row : option_table()) {
    found.push_back({&row, nullptr, {}});
    Found& added = found.back();
    added.option = row.is_flag() ? app.add_flag(all_names(row))->disable_flag_override()
                   : row.merges  ? app.add_option(all_names(row), added.value)->join(',')
                                 : app.add_option(all_names(row), added.value)->take_last();
  }
  return found;
}

// One origin's value for one row; `name` is how the user knows it.
Result<void> apply(LauncherOptions& options, const OptionRow& row, const std::string& name,
                   const std::string& value, Origin origin) {
  auto applied = row.apply(options, value);
  if (!applied) {
    Error error = applied.error();
    error.what = name;
    return error;
  }
  options.origins[row.long_name] = origin;
  return {};
}

Result<void> apply_all(LauncherOptions& options, const std::deque<Found>& found,
                       const Environment& environment) {
  for (const Found& each : found) {
    const OptionRow& row = *each.row;
    if (each.option->count() > 0) {
      const std::string value = row.is_flag() ? "1" : each.value;
      if (auto applied = apply(options, row, row.long_name, value, Origin::flag); !applied) return applied;
    } else if (*row.variable != '\0') {
      const auto value = environment(row.variable);
      if (!value) continue;
      if (auto applied = apply(options, row, row.variable, *value, Origin::environment); !applied)
        return applied;
    }
  }
  return {};
}

const OptionRow* row_of(const std::string& name) {
  const auto table = option_table();
  const auto row = std::find_if(table.begin(), table.end(), [&](const OptionRow& candidate) {
    return name == candidate.short_name || name == candidate.long_name ||
           name == with_underscores(candidate.long_name);
  });
  return row == table.end() ? nullptr : &*row;
}

// One node needs no place to meet others, and an endpoint is one without --master-addr.
std::vector<std::string> without_effect(const LauncherOptions& options) {
  const std::vector<std::string> of_a_meeting = {"--rdzv-backend", "--rdzv-endpoint", "--rdzv-conf",
                                                 "--node-rank",    "--master-addr",   "--master-port",
                                                 "--local-addr"};
  const std::vector<std::string> of_a_master = {"--master-addr", "--master-port"};
  std::vector<std::string> idle;
  const bool meets_at_endpoint = options.max_nodes > 1 && !options.rendezvous.endpoint.empty();
  if (options.max_nodes > 1 && !meets_at_endpoint) return idle;
  for (const std::string& name : meets_at_endpoint ? of_a_master : of_a_meeting) {
    const auto origin = options.origins.find(name);
    if (origin == options.origins.end() || origin->second == Origin::by_default) continue;
    if (name == "--rdzv-conf" && options.rendezvous.conf.empty())
      continue;  // all of it was of the worker store
    idle.push_back(origin->second == Origin::flag ? name : row_of(name)->variable);
  }
  return idle;
}

Result<void> settle_store(LauncherOptions& options) {
  auto store = take_store_options(options.rendezvous.conf);
  if (!store) return store.error();
  options.store = *store;
  return {};
}

// One node needs no place to meet others, whatever is said of one.
Result<void> settle_nodes(LauncherOptions& options, const Environment& environment) {
  options.without_effect = without_effect(options);
  if (options.max_nodes == 1) return {};
  if (options.standalone)
    return Error{"--standalone with --nnodes", "it means one node alone",
                 "leave one of them out, and name a --rdzv-endpoint for several nodes"};
  auto meeting = make_meeting(options.rendezvous, options.min_nodes, options.max_nodes);
  if (!meeting) return meeting.error();
  options.meeting = std::move(*meeting);
  if (options.meeting->token_file.empty())
    options.meeting->token_file = environment("MUSTER_TOKEN_FILE").value_or("");
  auto& tls = options.meeting->tls;
  if (!tls.any())
    tls = {environment("MUSTER_TLS_CERT").value_or(""), environment("MUSTER_TLS_KEY").value_or(""),
           environment("MUSTER_TLS_CA").value_or("")};
  return {};
}

struct SplitWords {
  std::vector<std::string> own;
  std::vector<std::string> program;
};

// The first word that is no option begins the program, and nothing after it is ours. The first "--" goes, be
// it before the program or right after it. "--name=value" becomes two words: CLI11 would take the word after
// an empty value ("--log-dir=") for the value, and that may be the program.
Result<SplitWords> split(const std::vector<std::string>& words) {
  SplitWords result;
  auto word = words.begin();
  bool separated = false;
  for (; word != words.end() && word->size() > 1 && word->front() == '-' && !separated; ++word) {
    separated = *word == "--";
    if (separated) continue;
    const auto equals = word->find('=');
    const std::string name = word->substr(0, equals);
    const OptionRow* row = row_of(name);
    result.own.push_back(row ? name : *word);
    if (!row) continue;
    if (equals != std::string::npos) {
      if (row->is_flag()) return Error{name, "it takes no value", kSeeHelp};
      result.own.push_back(word->substr(equals + 1));
    } else if (!row->is_flag() && word + 1 != words.end()) {
      result.own.push_back(*++word);
    }
  }
  result.program.assign(word, words.end());
  if (!separated && result.program.size() > 1 && result.program[1] == "--")
    result.program.erase(result.program.begin() + 1);
  return result;
}

}  // namespace

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (!value) return std::nullopt;
    return std::string(value);
  };
}

Result<LauncherOptions> parse_command_line(const std::vector<std::string>& words,
                                           const Environment& environment) {
  auto parts = split(words);
  if (!parts) return parts.error();
  CLI::App app;
  const auto found = declare(app);
  try {
    app.parse(
        std::vector<std::string>(parts->own.rbegin(), parts->own.rend()));  // it takes them from the back
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string text = error.what();
    return Error{text.substr(0, text.find(':')), "its value is missing", kSeeHelp};
  } catch (const CLI::ParseError& error) {
    return Error{"command line", error.what(), kSeeHelp};
  }
  if (const auto unknown = app.remaining(); !unknown.empty())
    return Error{unknown[0].substr(0, unknown[0].find('=')), "there is no such option", kSeeHelp};
  LauncherOptions options;
  if (auto applied = apply_all(options, found, environment); !applied) return applied.error();
  options.program = std::move(parts->program);
  if (options.help || options.version) return options;
  if (!options.program.empty() && options.program[0].empty())
    return Error{"program", "its name is empty", kSeeHelp};
  if (options.program.empty())
    return Error{"program", "none was given",
                 std::string("usage: muster [options] program [arguments]; ") + kSeeHelp};
  if (options.no_python && options.module)
    return Error{"--no-python with --module", "a module needs Python", "leave one of them out"};
  if (auto settled = settle_store(options); !settled) return settled.error();
  if (auto settled = settle_nodes(options, environment); !settled) return settled.error();
  return options;
}

std::string help_text() {
  std::string text =
      "usage: muster [options] program [arguments]\n"
      "\n"
      "Starts the program several times (\"workers\"), tells each its rank through the variables torchrun "
      "gives,\n"
      "restarts all of them when one fails, and ends them all when it ends. A program that is executable is "
      "run\n"
      "directly, a .py file by Python (PYTHON_EXEC, the active virtual environment's, or python3). All that\n"
      "follows the program is its own. Underscores may replace hyphens in options; a PET_ variable stands in "
      "for\n"
      "an option that is not given.\n"
      "\n";
  for (const OptionRow& row : option_table()) {
    std::string names =
        *row.short_name ? fmt::format("{}, {}", row.short_name, row.long_name) : row.long_name;
    if (!row.is_flag()) names += std::string(" ") + row.value_name;
    const std::string variable = *row.variable ? fmt::format(" [{}]", row.variable) : "";
    text += fmt::format("  {:<22} {}{}\n", names, row.help, variable);
  }
  text +=
      "\nExit code: 0, or the first failing worker's (128 + n for signal n); 2 for a wrong command line.\n";
  return text;
}

}  // namespace muster::launcher
