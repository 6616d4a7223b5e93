// The last screen of a job that somebody stopped: one line, unless something was wrong with it before or at the end.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <set>

#include "agent/report/screen_parts.hpp"
#include "base/ranks.hpp"
#include "base/time.hpp"

namespace muster::agent {

namespace {

constexpr auto kLongSilence = std::chrono::minutes(1);

// What the headline adds, and the lines below it.
struct Story {
  std::string guess;
  std::string next;
  std::string field_name;
  std::string field_text;
  std::string more;
};

int last_round(const JobReport& report) { return report.workers.empty() ? 0 : report.workers.back().round; }

// When the signal came. If another node had it: the first worker that ended did so at once, or nobody did before the
// grace was over.
std::int64_t stop_began_ms(const JobReport& report) {
  if (report.stop_signal_unix_ms > 0) return report.stop_signal_unix_ms;
  std::int64_t first_end = INT64_MAX;
  for (const WorkerRecord& worker : report.workers)
    if (worker.round == last_round(report) && worker.ended_unix_ms > 0)
      first_end = std::min(first_end, worker.ended_unix_ms);
  return first_end == INT64_MAX ? 0 : first_end;
}

std::set<int> killed_by_us(const JobReport& report) {
  std::set<int> ranks;
  for (const WorkerRecord& worker : report.workers)
    if (worker.round == last_round(report) && worker.end && worker.end->stopped_by_muster &&
        worker.end->kind == ExitCause::Kind::signalled && worker.end->value == SIGKILL)
      ranks.insert(worker.rank);
  return ranks;
}

std::string had_to_be_killed(const JobReport& report, const std::string& who) {
  if (report.stop_signals > 1 && report.stop_grace > Duration::zero())
    return fmt::format(", and {} had to be killed after the {} that a second signal left", who,
                       human(report.stop_grace));
  return report.stop_grace > Duration::zero()
             ? fmt::format(", and {} had to be killed after the grace of {}", who, human(report.stop_grace))
             : fmt::format(", and {} had to be killed at once", who);
}

/// How there may be more time for it; of a hurry the user knows.
std::string more_time(const JobReport& report) {
  return report.stop_signals > 1 ? "" : ", or give more time with --stop-grace";
}

Story of_the_killed(const JobReport& report, const std::set<int>& ranks) {
  const std::string who = ranks_text(ranks);
  return {
      had_to_be_killed(report, who),
      fmt::format("let {} leave on {}", ranks.size() == 1 ? "it" : "them", signal_name(report.stop_signal)),
      "", "",
      fmt::format("what {} had not saved is lost: save and leave on {} (docs/workers.md){}", who,
                  signal_name(report.stop_signal), more_time(report))};
}

/// "rank 1": whose main process ended in time, but not what it had started.
std::set<int> with_killed_rest(const JobReport& report) {
  std::set<int> ranks;
  for (const WorkerRecord& worker : report.workers)
    if (worker.round == last_round(report) && !worker.killed_rest.empty()) ranks.insert(worker.rank);
  return ranks;
}

Story of_the_killed_rest(const JobReport& report, const std::set<int>& ranks) {
  const std::string who = ranks_text(ranks);
  const std::string signal = signal_name(report.stop_signal);
  return {had_to_be_killed(report, "what " + who + " left behind"),
          fmt::format("let it leave on {}, see below", signal), "", "",
          fmt::format("the processes that {} started must leave on {} too (docs/workers.md){}", who, signal,
                      more_time(report))};
}

Story of_the_survivors(const JobReport& report) {
  return {", but " + survivors_text(report), "end it before the job starts again", "", "",
          "it may hold its device, its memory and its ports; nothing can kill it while the kernel or a "
          "debugger holds it"};
}

Story of_the_stall(const Stall& stall, std::int64_t stopped_ms) {
  const auto ago = std::chrono::milliseconds(std::max<std::int64_t>(0, stopped_ms - stall.unix_ms));
  return {
      ", while it did not get on", "see below who is waited for", "did not get on",
      clipped(stall.sentence) + fmt::format(" (said {} before the stop)", human(ago)),
      "look at what the rank that is waited for does, before the stop: py-spy dump --pid PID, gdb -p PID"};
}

// The time since any worker of the last round has printed something; zero if it is not known.
Duration silence(const JobReport& report, std::int64_t stopped_ms) {
  std::int64_t last_ms = 0;
  for (const WorkerRecord& worker : report.workers)
    if (worker.round == last_round(report)) last_ms = std::max(last_ms, worker.last_output_unix_ms);
  return last_ms == 0 ? Duration::zero()
                      : std::chrono::milliseconds(std::max<std::int64_t>(0, stopped_ms - last_ms));
}

std::optional<Story> story_of(const JobReport& report) {
  const std::int64_t stopped_ms = stop_began_ms(report);
  if (!report.survivors.empty()) return of_the_survivors(report);
  if (!report.stalls.empty() && report.stalls.back().round == last_round(report) &&
      report.stalls.back().over_unix_ms == 0)
    return of_the_stall(report.stalls.back(), stopped_ms);
  if (const auto killed = killed_by_us(report); !killed.empty() && report.stop_signal > 0)
    return of_the_killed(report, killed);
  if (const auto ranks = with_killed_rest(report); !ranks.empty() && report.stop_signal > 0)
    return of_the_killed_rest(report, ranks);
  const Duration silent = silence(report, stopped_ms);
  if (silent < kLongSilence) return std::nullopt;
  return Story{fmt::format(", after no worker had printed anything for {}", human(silent)),
               "if it hung, see below", "", "",
               "look where it stands before the stop: py-spy dump --pid PID, gdb -p PID"};
}

}  // namespace

std::string stopped_screen(const JobReport& report) {
  const char* const how = report.outcome.kind == rendezvous::OutcomeKind::stopped ? "ended" : "preempted";
  const auto story = story_of(report);
  if (!story)
    return fmt::format(
        "muster: job {} {}: {}; the same command starts it again, from its newest checkpoint if it keeps "
        "any{}{}\n",
        report.run_id, how, report.outcome.reason, logs_hint(report), status_hint(report));
  std::string text = fmt::format("muster: job {} {}: {}{}; {}\n\n", report.run_id, how, report.outcome.reason,
                                 story->guess, story->next);
  if (!story->field_name.empty()) text += field(story->field_name, story->field_text);
  text += ends_of_round(report, last_round(report), stop_began_ms(report), "workers",
                        [](const WorkerRecord&) { return false; });
  text += field("what to do", story->more);
  if (!report.log_folder.empty()) text += field("logs in", report.log_folder + status_hint(report));
  return text;
}

}  // namespace muster::agent
