#include "launcher/command_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace muster::launcher {

const char* const kSeeHelp = "see muster --help";

namespace {

using Word = std::vector<std::string>::const_iterator;

bool is_option(const std::string& word) { return word.size() > 1 && word.front() == '-'; }

bool all_digits(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char byte) { return std::isdigit(byte) != 0; });
}

// "-1", "-.5", "-2.75".
bool is_negative_number(const std::string& word) {
  const std::string number = word.substr(1);
  const auto point = number.find('.');
  if (point == std::string::npos) return all_digits(number);
  const std::string whole = number.substr(0, point);
  return (whole.empty() || all_digits(whole)) && all_digits(number.substr(point + 1));
}

bool may_be_value(const std::string& word) {
  return !is_option(word) || is_negative_number(word) || word.find(' ') != std::string::npos;
}

std::vector<const OptionRow*> rows_that_begin_with(const std::string& name, bool of_torchrun) {
  std::vector<const OptionRow*> rows;
  for (const OptionRow& row : option_table())
    if (row.of_torchrun == of_torchrun && std::string(row.long_name).starts_with(name)) rows.push_back(&row);
  return rows;
}

std::string with_hyphens(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

Error missing_value(const OptionRow& row) { return Error{row.long_name, "its value is missing", kSeeHelp}; }

/// The words, read one after another.
class Reader {
 public:
  explicit Reader(const std::vector<std::string>& words) : next_(words.begin()), end_(words.end()) {}

  Result<CommandLine> read() {
    while (next_ != end_ && is_option(*next_) && !separated_) {
      const std::string word = *next_++;
      separated_ = word == "--";
      if (separated_) continue;
      const auto taken = word[1] == '-' ? take_long(word) : take_short(word);
      if (!taken) return taken.error();
    }
    result_.program.assign(next_, end_);
    if (!separated_ && result_.program.size() > 1 && result_.program[1] == "--")
      result_.program.erase(result_.program.begin() + 1);
    return std::move(result_);
  }

 private:
  Result<void> take_long(const std::string& word) {
    const auto equals = word.find('=');
    const auto found = find_option(word.substr(0, equals));
    if (!found) return found.error();
    const OptionRow& row = **found;
    if (equals == std::string::npos) return take_value(row);
    if (row.is_flag()) return Error{row.long_name, "it takes no value", kSeeHelp};
    result_.options.push_back({&row, word.substr(equals + 1)});
    return {};
  }

  // "-m", "-mr3", "-r3", "-r=3", "-r 3".
  Result<void> take_short(const std::string& word) {
    for (std::size_t at = 1; at < word.size(); ++at) {
      const auto found = find_option(std::string("-") + word[at]);
      if (!found) return found.error();
      const OptionRow& row = **found;
      if (row.is_flag()) {
        result_.options.push_back({&row, "1"});
        continue;
      }
      if (at + 1 == word.size()) return take_value(row);
      result_.options.push_back({&row, word.substr(at + (word[at + 1] == '=' ? 2 : 1))});
      break;
    }
    return {};
  }

  Result<void> take_value(const OptionRow& row) {
    if (row.is_flag()) {
      result_.options.push_back({&row, "1"});
      return {};
    }
    if (next_ == end_ || !may_be_value(*next_)) return missing_value(row);
    result_.options.push_back({&row, *next_++});
    return {};
  }

  Word next_;
  Word end_;
  bool separated_ = false;
  CommandLine result_;
};

}  // namespace

Result<const OptionRow*> find_option(const std::string& name) {
  const auto found = [](const OptionRow& row) {
    return Result<const OptionRow*>(boost::system::in_place_value, &row);
  };
  const Error unknown{name, "there is no such option", kSeeHelp};
  const std::string wanted = name.starts_with("--") ? "--" + with_hyphens(name.substr(2)) : name;
  for (const OptionRow& row : option_table())
    if (wanted == row.long_name || (wanted == row.short_name && !wanted.empty())) return found(row);
  if (!wanted.starts_with("--")) return unknown;
  for (const bool of_torchrun : {true, false}) {
    const auto rows = rows_that_begin_with(wanted, of_torchrun);
    if (rows.size() == 1) return found(*rows.front());
    if (rows.empty()) continue;
    std::string all;
    for (const OptionRow* row : rows) all += (all.empty() ? "" : ", ") + std::string(row->long_name);
    return Error{name, "it may mean " + all, "write more of its name"};
  }
  return unknown;
}

Result<CommandLine> read_command_line(const std::vector<std::string>& words) { return Reader(words).read(); }

}  // namespace muster::launcher
