// A trainer's command line. Each option is added either as one that all ranks must be given alike (`agreed`), or as one
// that each may have for itself (`own`): there is no third way, so none can be left out of what the ranks compare.
//
//   OptionTable table("what the program is");
//   table.agreed("--batch-size", fit.batch_size, "samples a step of each worker")->check(...);
//   table.own("--metrics-file", options.metrics_file, "append JSON lines");
//   table.parse(argc, argv);
//   table.agreement();                              // {{"--batch-size", "64"}}
//
// --help lists the two kinds apart. What is added must outlive the table.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "trainers/training/agreement.hpp"

namespace muster::trainers {

class OptionTable {
 public:
  static constexpr const char* kOwnGroup = "May differ from rank to rank";

  explicit OptionTable(const std::string& what) : app_(what) {}

  template <class T>
  CLI::Option* agreed(const std::string& name, T& value, const std::string& what) {
    return agreed_as(name, value, what, [&value] { return fmt::format("{}", value); });
  }
  /// What is compared is `text`, called after parsing.
  template <class T>
  CLI::Option* agreed_as(const std::string& name, T& value, const std::string& what,
                         std::function<std::string()> text) {
    agreed_.emplace_back(name, std::move(text));
    return app_.add_option(name, value, what);
  }
  /// Of a path it is compared whether there is one.
  CLI::Option* agreed_presence(const std::string& name, std::filesystem::path& value,
                               const std::string& what);
  /// One of the words, in any case. `words` must outlive the table too.
  template <class T>
  void agreed_choice(const std::string& name, T& value, const std::map<std::string, T>& words,
                     const std::string& what);
  CLI::Option* agreed_flag(const std::string& name, const std::function<void()>& when_given,
                           const std::string& what);

  template <class T>
  CLI::Option* own(const std::string& name, T& value, const std::string& what) {
    return app_.add_option(name, value, what)->group(kOwnGroup);
  }
  void own_flag(const std::string& name, bool& value, const std::string& what) {
    app_.add_flag(name, value, what)->group(kOwnGroup);
  }

  void remove(const std::string& name);

  /// Throws CLI::ParseError.
  void parse(int argc, char** argv) { app_.parse(argc, argv); }
  bool given(const std::string& name) const { return app_.count(name) > 0; }
  std::string help() const { return app_.help(); }

  /// After parse(): what must be the same on every rank, in the order in which it was added.
  Description agreement() const;

 private:
  CLI::App app_;
  std::vector<std::pair<std::string, std::function<std::string()>>> agreed_;
};

template <class T>
std::string word_for(const std::map<std::string, T>& words, T value) {
  return std::find_if(words.begin(), words.end(), [&](const auto& entry) { return entry.second == value; })
      ->first;
}

template <class T>
void OptionTable::agreed_choice(const std::string& name, T& value, const std::map<std::string, T>& words,
                                const std::string& what) {
  std::string all;
  for (const auto& [word, meaning] : words) all += (all.empty() ? "" : ", ") + word;
  const auto choose = [&value, &words, name, all](const std::string& given) {
    for (const auto& [word, meaning] : words) {
      const auto same = [](char a, char b) { return std::tolower(a) == std::tolower(b); };
      if (!std::equal(given.begin(), given.end(), word.begin(), word.end(), same)) continue;
      value = meaning;
      return;
    }
    throw CLI::ValidationError(name, "'" + given + "' is none of " + all);
  };
  agreed_.emplace_back(name, [&value, &words] { return word_for(words, value); });
  app_.add_option_function<std::string>(name, choose,
                                        what + ": " + all + " (" + word_for(words, value) + " by default)");
}

}  // namespace muster::trainers
