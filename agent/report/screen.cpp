// The last screen, for people.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "agent/report/advice.hpp"
#include "agent/report/report.hpp"
#include "agent/report/screen_parts.hpp"
#include "base/time.hpp"

namespace muster::agent {

namespace {

using rendezvous::OutcomeKind;
using rendezvous::WorkerFailure;

constexpr std::size_t kMaxLastLines = 16;  // with all other lines the screen stays under 30

std::string when(std::int64_t unix_ms) {
  return clock_text(std::chrono::system_clock::time_point(std::chrono::milliseconds(unix_ms)));
}

std::string lived(const WorkerFailure& failure) {
  return failure.lived_ms < 1 ? "under 1 ms" : human(std::chrono::milliseconds(failure.lived_ms));
}

std::string last_lines_text(const WorkerFailure& failure) {
  std::string text;
  if (failure.last_lines.empty())
    return field("its last lines",
                 "none on stderr" + (failure.log_path.empty() ? "" : "; " + failure.log_path));
  text += field("its last lines", failure.log_path);
  const std::size_t count = std::min(failure.last_lines.size(), kMaxLastLines);
  for (auto line = failure.last_lines.end() - static_cast<std::ptrdiff_t>(count);
       line != failure.last_lines.end(); ++line)
    text += "      " + clipped(*line) + "\n";
  return text;
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
  std::string text = fmt::format("muster: job {} FAILED: rank {} on {} {}{}; {}\n\n", report.run_id,
                                 first.rank, first.node, bare.sentence(), advice.guess, advice.next);
  text += field(
      "first failure",
      fmt::format("rank {} (local {}) on {}{}, {}round {}, {}, {}", first.rank, first.local_rank, first.node,
                  first.host.empty() || first.host == first.node ? "" : " (" + first.host + ")",
                  started ? fmt::format("pid {}, ", first.pid) : "", first.round, when(first.unix_time_ms),
                  started ? "after " + lived(first) : "at its start"));
  const std::string how = first.cause.sentence();
  text += field("how it ended", how.starts_with("was ") ? how.substr(4) : how);
  if (!first.message.empty()) text += field(started ? "its error file" : "why", clipped(first.message));
  if (started) text += last_lines_text(first);
  text += consequences(report, first);
  text += field("restarts", clipped(restarts_text(report.outcome), 600));
  text += field("what to do", advice.more + status_hint(report));
  return text;
}

std::string success_line(const JobReport& report) {
  std::set<int> rounds;
  std::set<int> ranks;
  std::int64_t begin_ms = INT64_MAX;
  std::int64_t end_ms = 0;
  for (const WorkerRecord& worker : report.workers) {
    rounds.insert(worker.round);
    ranks.insert(worker.rank);
    begin_ms = std::min(begin_ms, worker.started_unix_ms);
    end_ms = std::max(end_ms, worker.ended_unix_ms);
  }
  const auto took = std::chrono::milliseconds(std::max<std::int64_t>(0, end_ms - begin_ms));
  const auto restarts = report.outcome.restarts.size();
  const std::string after =
      restarts == 0 ? "" : fmt::format(" after {} restart{}", restarts, restarts == 1 ? "" : "s");
  return fmt::format("muster: job {} succeeded{}: {} worker{} here, {}{}\n", report.run_id, after,
                     ranks.size(), ranks.size() == 1 ? "" : "s", human(took), logs_hint(report));
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
    case OutcomeKind::rendezvous_failed:
      return fmt::format("muster: job {} FAILED, rendezvous: {}{}\n", report.run_id, outcome.reason,
                         status_hint(report));
  }
  return "";
}

}  // namespace muster::agent
