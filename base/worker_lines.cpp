#include "base/worker_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace muster {
namespace {

/// A decimal number at the beginning of `text`, which it is taken from with the blank after it.
template <class Number>
bool take(std::string_view& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || text.front() == '-') return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.starts_with(' ')) text.remove_prefix(1);
  return true;
}

std::optional<std::int64_t> one_number(std::string_view text) {
  std::int64_t number = 0;
  return take(text, number) && text.empty() ? std::optional(number) : std::nullopt;
}

std::optional<WorkerLine> hello(std::string_view text) {
  HelloLine line;
  const bool whole = take(text, line.version) && take(text, line.round) && take(text, line.local_rank);
  return whole && text.empty() ? std::optional<WorkerLine>(line) : std::nullopt;
}

enum class Word { hello, progress, safe, done, save, unknown };

Word word_of(std::string_view text) {
  return text == "hello"      ? Word::hello
         : text == "progress" ? Word::progress
         : text == "safe"     ? Word::safe
         : text == "done"     ? Word::done
         : text == "save"     ? Word::save
                              : Word::unknown;
}

std::optional<WorkerLine> parse(Word word, std::string_view numbers) {
  if (word == Word::hello) return hello(numbers);
  if (word == Word::done) return numbers.empty() ? std::optional<WorkerLine>(DoneLine{}) : std::nullopt;
  const auto number = one_number(numbers);
  if (!number) return std::nullopt;
  if (word == Word::progress) return ProgressLine{*number};
  if (word == Word::safe) return SafeLine{*number};
  return SaveLine{std::chrono::milliseconds(*number)};
}

Error broken(std::string_view line, const char* why) {
  return {"the channel between a worker and its agent",
          fmt::format("{}: {:?}", why, line.substr(0, kMaxWorkerLine)), "the connection is closed"};
}

}  // namespace

std::string worker_line(const WorkerLine& line) {
  struct Text {
    std::string operator()(const HelloLine& l) const {
      return fmt::format("hello {} {} {}\n", l.version, l.round, l.local_rank);
    }
    std::string operator()(const ProgressLine& l) const { return fmt::format("progress {}\n", l.step); }
    std::string operator()(const SafeLine& l) const { return fmt::format("safe {}\n", l.step); }
    std::string operator()(const DoneLine&) const { return "done\n"; }
    std::string operator()(const SaveLine& l) const { return fmt::format("save {}\n", l.within.count()); }
  };
  return std::visit(Text{}, line);
}

Result<std::vector<WorkerLine>> WorkerLineReader::put(std::string_view bytes) {
  std::vector<WorkerLine> lines;
  rest_ += bytes;
  std::string_view left = rest_;
  for (std::size_t end; (end = left.find('\n')) != std::string_view::npos; left.remove_prefix(end + 1)) {
    const std::string_view line = left.substr(0, end);
    if (end >= kMaxWorkerLine) return broken(line, "a line is too long");
    const auto blank = std::min(line.find(' '), line.size());
    const Word word = word_of(line.substr(0, blank));
    if (word == Word::unknown) continue;
    const auto known = parse(word, line.substr(std::min(blank + 1, line.size())));
    if (!known) return broken(line, "a line has wrong numbers");
    lines.push_back(*known);
  }
  if (left.size() >= kMaxWorkerLine) return broken(left, "a line is too long");
  rest_.erase(0, rest_.size() - left.size());
  return lines;
}

}  // namespace muster
