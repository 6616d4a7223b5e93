#include "agent/logs/round_logs.hpp"

#include "agent/logs/collapsed_console.hpp"
#include "agent/logs/console.hpp"
#include "agent/logs/matched_lines.hpp"
#include "base/ranks.hpp"

namespace muster::agent {

namespace {

// "0-3,7", as it stands in a prefix.
std::string short_text(const std::set<int>& ranks) {
  std::string text = ranks_text(ranks);
  text.erase(0, text.find(' ') + 1);
  std::erase(text, ' ');
  return text;
}

}  // namespace

RoundLogs::RoundLogs(const boost::asio::any_io_executor& executor, const OutputOptions& options, Round round)
    : executor_(executor), options_(options), round_(std::move(round)), console_(Console::of(executor)) {
  if (options_.collapse && round_.local_workers > 1) collapsed_ = new_collapsed_console();
}

std::shared_ptr<CollapsedConsole> RoundLogs::new_collapsed_console() const {
  CollapsedConsole::Options collapsed;
  collapsed.window = *options_.collapse;
  collapsed.shown_out = shown(Streams::out);
  collapsed.shown_err = shown(Streams::err);
  collapsed.prefix_of = [this](Console::Stream stream, const std::set<int>& local_ranks) {
    return prefix_of(stream == Console::Stream::out ? Streams::out : Streams::err, local_ranks);
  };
  return std::make_shared<CollapsedConsole>(executor_, console_, std::move(collapsed));
}

std::set<int> RoundLogs::shown(Streams stream) const {
  std::set<int> local_ranks;
  for (int local_rank = 0; local_rank < round_.local_workers; ++local_rank)
    if (is_shown(options_, stream, local_rank, round_.first_rank + local_rank))
      local_ranks.insert(local_rank);
  return local_ranks;
}

Result<void> RoundLogs::open() {
  const auto unseen = filter_without_ranks(options_, round_.world_size);
  if (!unseen.empty() && round_.first_rank == 0)
    console_->say(Console::Stream::err, "muster: " + unseen + "\n");
  if (round_.folder.empty()) return {};
  const auto add = [this](const char* name, LineMatcher matcher,
                          std::initializer_list<decltype(&matched_out_)> to) -> Result<void> {
    const std::shared_ptr<MatchedLines> file = new_file(name, std::move(matcher));
    if (auto opened = file->open(); !opened) return opened;
    for (auto* streams : to) streams->push_back(file);
    return {};
  };
  if (options_.match)
    if (auto added = add("matched.log", *options_.match, {&matched_out_, &matched_err_}); !added)
      return added;
  if (!options_.stdout_filters.empty())
    if (auto added = add("filtered_stdout.log", LineMatcher(options_.stdout_filters), {&matched_out_});
        !added)
      return added;
  if (options_.stderr_filters.empty()) return {};
  return add("filtered_stderr.log", LineMatcher(options_.stderr_filters), {&matched_err_});
}

std::unique_ptr<MatchedLines> RoundLogs::new_file(const char* name, LineMatcher matcher) const {
  return std::make_unique<MatchedLines>(
      std::move(matcher), LogFile(round_folder() / name, [console = console_](const std::string& sentence) {
        console->say(Console::Stream::err, "muster: " + sentence + "\n");
      }));
}

std::filesystem::path RoundLogs::round_folder() const {
  return round_.folder / ("round-" + std::to_string(round_.name.round));
}

WorkerName RoundLogs::name_of(int local_rank) const {
  WorkerName name = round_.name;
  name.local_rank = std::to_string(local_rank);
  name.rank = std::to_string(round_.first_rank + local_rank);
  return name;
}

// Of one worker it is that of its lines; of several it names them all.
LinePrefix RoundLogs::prefix_of(Streams stream, const std::set<int>& local_ranks) const {
  const int first = *local_ranks.begin();
  const std::string text = prefix_template(options_, stream, first);
  if (local_ranks.size() == 1) return LinePrefix(text, name_of(first));
  std::set<int> ranks;
  for (const int local_rank : local_ranks) ranks.insert(round_.first_rank + local_rank);
  WorkerName all = round_.name;
  all.local_rank = short_text(local_ranks);
  all.rank = short_text(ranks);
  const LinePrefix prefix(text, all);
  return prefix == LinePrefix(text, name_of(first)) ? LinePrefix("[ranks ${rank}]: " + text, all) : prefix;
}

StreamRoute RoundLogs::route_of(int local_rank, Streams stream) const {
  const WorkerName name = name_of(local_rank);
  StreamRoute route;
  route.file = log_file_of(options_, round_.folder, name, stream == Streams::out ? "stdout" : "stderr");
  route.to_console = is_shown(options_, stream, local_rank, round_.first_rank + local_rank);
  route.prefix = LinePrefix(prefix_template(options_, stream, local_rank), name);
  route.matched = stream == Streams::out ? matched_out_ : matched_err_;
  return route;
}

WorkerLogOptions RoundLogs::of(int local_rank) const {
  WorkerLogOptions log;
  log.out = route_of(local_rank, Streams::out);
  log.err = route_of(local_rank, Streams::err);
  log.local_rank = local_rank;
  log.terminal = options_.terminals;
  log.whole_lines = round_.local_workers > 1 || !log.out.prefix.empty() || !log.err.prefix.empty();
  log.matched_prefix = LinePrefix(
      options_.line_prefix && !options_.line_prefix->empty() ? *options_.line_prefix : kTorchrunPrefix,
      name_of(local_rank));
  log.console = console_;
  log.collapsed = collapsed_;
  return log;
}

}  // namespace muster::agent
