// The last screen, for people.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "agent/report/advice.hpp"
#include "agent/report/harmless_text.hpp"
#include "agent/report/report.hpp"
#include "agent/report/screen_parts.hpp"
#include "base/time.hpp"

namespace muster::agent {

namespace {

using rendezvous::OutcomeKind;
using rendezvous::WorkerFailure;

// Of its error file and its last lines together: with all other lines the screen stays under 30.
constexpr std::size_t kMaxTextLines = 16;

std::string when(std::int64_t unix_ms) {
  return clock_text(std::chrono::system_clock::time_point(std::chrono::milliseconds(unix_ms)));
}

std::string lived(const WorkerFailure& failure) {
  return failure.lived_ms < 1 ? "under 1 ms" : human(std::chrono::milliseconds(failure.lived_ms));
}

std::string indented_end(const std::vector<std::string>& lines, std::size_t count) {
  std::string text;
  for (auto line = lines.end() - static_cast<std::ptrdiff_t>(count); line != lines.end(); ++line)
    text += "      " + clipped(*line) + "\n";
  return text;
}

// Bytes that no screen shows (a megabyte of zeros) push out no words.
std::vector<std::string> lines_to_show(std::vector<std::string> lines) {
  std::erase_if(lines, [](const std::string& line) { return !line.empty() && harmless(line).empty(); });
  return lines;
}

std::string last_lines_text(const WorkerFailure& failure, std::size_t room) {
  if (failure.last_lines.empty())
    return field("its last lines",
                 "none on stderr" + (failure.log_path.empty() ? "" : "; " + failure.log_path));
  const auto lines = lines_to_show(failure.last_lines);
  if (lines.empty())
    return field("its last lines", "nothing that a screen can show" +
                                       (failure.log_path.empty() ? "" : "; " + failure.log_path));
  return field("its last lines", failure.log_path) + indented_end(lines, std::min(lines.size(), room));
}

// Without the blank ones at its end.
std::vector<std::string> lines_of_message(const WorkerFailure& failure) {
  std::vector<std::string> lines;
  std::istringstream message(failure.message);
  for (std::string line; std::getline(message, line);) lines.push_back(line);
  while (!lines.empty() && lines.back().find_first_not_of(" \t\r") == std::string::npos) lines.pop_back();
  return lines;
}

// The end of a traceback says what happened. What stderr has too is there once; so is what is one line.
std::string error_file_text(const WorkerFailure& failure, std::size_t room) {
  const std::vector<std::string> lines = lines_of_message(failure);
  if (lines.empty()) return "";
  const auto& last = failure.last_lines;
  if (lines.size() == 1 || std::find(last.begin(), last.end(), lines.back()) != last.end())
    return field("its error file", clipped(lines.back()));
  const std::size_t count = std::min(lines.size(), room);
  return field("its error file", count == lines.size()
                                     ? fmt::format("{} lines", count)
                                     : fmt::format("the last {} of {} lines", count, lines.size())) +
         indented_end(lines, count);
}

// What the worker said of its end, in `room` lines and two headings.
std::string own_words(const WorkerFailure& failure, std::size_t room) {
  const std::size_t spared = std::min(failure.last_lines.size(), room / 2);
  const std::string error_file = error_file_text(failure, room - spared);
  const auto heading_and_lines =
      static_cast<std::size_t>(std::count(error_file.begin(), error_file.end(), '\n'));
  const std::size_t used = heading_and_lines > 0 ? heading_and_lines - 1 : 0;
  return error_file + last_lines_text(failure, room - used);
}

// The others of the first failure's round, grouped by how they ended.
std::string consequences(const JobReport& report, const WorkerFailure& first) {
  return ends_of_round(
      report, first.round, first.unix_time_ms, "consequences",
      [&](const WorkerRecord& worker) { return worker.rank == first.rank && worker.pid == first.pid; });
}

std::string restarts_text(const rendezvous::Outcome& outcome) {
  if (outcome.max_restarts == 0) return "none allowed (--max-restarts)";
  std::string text = fmt::format("{} of {} used", outcome.restarts.size(), outcome.max_restarts);
  for (std::size_t index = 0; index < outcome.restarts.size(); ++index)
    text += (index == 0 ? ": " : ", ") + outcome.restarts[index];
  if (static_cast<int>(outcome.restarts.size()) < outcome.max_restarts && !outcome.reason.empty())
    text += "; no more, since " + outcome.reason;
  return text;
}

std::string failure_screen(const JobReport& report, const WorkerFailure& first) {
  const Advice advice = advice_for(first, report.python);
  const bool started = first.cause.kind != ExitCause::Kind::start_failed;
  ExitCause bare = first.cause;
  bare.evidence.clear();
  const std::string next = report.survivors.empty()
                               ? advice.next
                               : survivors_text(report) + "; end it before the job starts again";
  std::string text = fmt::format("muster: job {} FAILED: rank {} on {} {}{}; {}\n\n", report.run_id,
                                 first.rank, first.node, bare.sentence(), advice.guess, next);
  text += field(
      "first failure",
      fmt::format("rank {} (local {}) on {}{}, {}round {}, {}, {}", first.rank, first.local_rank, first.node,
                  first.host.empty() || first.host == first.node ? "" : " (" + first.host + ")",
                  started ? fmt::format("pid {}, ", first.pid) : "", first.round, when(first.unix_time_ms),
                  started ? "after " + lived(first) : "at its start"));
  const std::string how = first.cause.sentence();
  text += field("how it ended", how.starts_with("was ") ? how.substr(4) : how);
  if (started)
    text += own_words(first, report.survivors.empty() ? kMaxTextLines : kMaxTextLines - 1);
  else if (!first.message.empty())
    text += field("why", clipped(first.message));
  text += consequences(report, first);
  if (!report.survivors.empty()) text += field("still there", survivors_text(report));
  text += field("restarts", clipped(restarts_text(report.outcome), 600));
  text += field("what to do", advice.more + status_hint(report));
  return text;
}

// A node's ranks may change with each round, the number of its workers does not.
std::string success_line(const JobReport& report) {
  std::set<int> ranks;
  std::int64_t begin_ms = INT64_MAX;
  std::int64_t end_ms = 0;
  for (const WorkerRecord& worker : report.workers) {
    if (worker.round == report.workers.back().round) ranks.insert(worker.rank);
    begin_ms = std::min(begin_ms, worker.started_unix_ms);
    end_ms = std::max(end_ms, worker.ended_unix_ms);
  }
  const auto took = std::chrono::milliseconds(std::max<std::int64_t>(0, end_ms - begin_ms));
  const auto restarts = report.outcome.restarts.size();
  const std::string after =
      restarts == 0 ? "" : fmt::format(" after {} restart{}", restarts, restarts == 1 ? "" : "s");
  const std::string but = report.survivors.empty() ? "" : ", but " + survivors_text(report);
  return fmt::format("muster: job {} succeeded{}: {} worker{} here, {}{}{}\n", report.run_id, after,
                     ranks.size(), ranks.size() == 1 ? "" : "s", human(took), but, logs_hint(report));
}

}  // namespace

std::string render_report(const JobReport& report) {
  const auto& outcome = report.outcome;
  switch (outcome.kind) {
    case OutcomeKind::succeeded:
      return success_line(report);
    case OutcomeKind::failed:
      if (outcome.first_failure) return failure_screen(report, *outcome.first_failure);
      return fmt::format("muster: job {} FAILED: {}{}\n", report.run_id, outcome.reason, status_hint(report));
    case OutcomeKind::stopped:
    case OutcomeKind::preempted:
      return stopped_screen(report);
    case OutcomeKind::node_lost:
      return fmt::format(
          "muster: job {} FAILED: {}; see on that machine why, and launch again; --max-restarts waits for "
          "another, "
          "--nnodes=MIN:MAX goes on without{}\n",
          report.run_id, outcome.reason, status_hint(report));
    case OutcomeKind::rendezvous_failed:
      return fmt::format("muster: job {} FAILED, rendezvous: {}{}\n", report.run_id, outcome.reason,
                         status_hint(report));
  }
  return "";
}

}  // namespace muster::agent
