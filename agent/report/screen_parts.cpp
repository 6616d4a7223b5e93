#include "agent/report/screen_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <map>
#include <set>

#include "agent/report/harmless_text.hpp"
#include "base/ranks.hpp"
#include "base/time.hpp"

namespace muster::agent {

namespace {

constexpr std::size_t kMaxEndLines = 4;  // with all other lines the screens stay under 30

// An exit code may be a worker's answer to our signal, or its own failure at the same moment.
std::string how_it_ended_here(ExitCause end) {
  end.evidence.clear();
  if (end.stopped_by_muster && end.kind == ExitCause::Kind::signalled)
    return "stopped by muster (" + signal_name(end.value) + ")";
  if (end.stopped_by_muster && end.kind == ExitCause::Kind::exited)
    return fmt::format("asked by muster to stop, exited with code {}", end.value);
  return end.sentence();
}

struct End {
  std::string how;
  std::string evidence;
  std::string killed_rest;
  auto operator<=>(const End&) const = default;
};

struct Group {
  std::set<int> ranks;
  std::int64_t last_ended_ms = 0;
};

std::string time_text(const Group& group, std::int64_t since_unix_ms) {
  if (group.last_ended_ms == 0) return "";
  const auto after =
      std::chrono::milliseconds(std::max<std::int64_t>(0, group.last_ended_ms - since_unix_ms));
  return after.count() == 0 ? " at once" : " within " + human(after);
}

}  // namespace

std::string field(std::string_view name, std::string_view value) {
  return fmt::format("  {:<14} {}\n", name, value);
}

std::string clipped(const std::string& raw, std::size_t max_bytes) {
  std::string text = harmless(raw);
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (text.size() > max_bytes) {
    while (max_bytes > 0 && (static_cast<unsigned char>(text[max_bytes]) & 0xC0) == 0x80) --max_bytes;
    text = text.substr(0, max_bytes) + " ...";
  }
  if (text.find('\x1b') != std::string::npos) text += "\x1b[0m";  // a worker's colours end with its line
  return text;
}

std::string ends_of_round(const JobReport& report, int round, std::int64_t since_unix_ms,
                          std::string_view name, const std::function<bool(const WorkerRecord&)>& left_out) {
  std::map<End, Group> groups;
  for (const WorkerRecord& worker : report.workers) {
    if (worker.round != round || left_out(worker)) continue;
    const End end = {worker.end ? how_it_ended_here(*worker.end) : "never seen to end",
                     worker.end ? worker.end->evidence : "", worker.killed_rest};
    Group& group = groups[end];
    group.ranks.insert(worker.rank);
    group.last_ended_ms = std::max(group.last_ended_ms, worker.ended_unix_ms);
  }
  std::string text;
  std::size_t lines = 0;
  for (const auto& [end, group] : groups) {
    if (++lines > kMaxEndLines) return text + field("", "others ended in other ways: see the status file");
    text += field(
        lines == 1 ? name : "",
        clipped(
            ranks_text(group.ranks) + " " + end.how + time_text(group, since_unix_ms) +
            (end.evidence.empty() ? "" : "; " + end.evidence) +
            (end.killed_rest.empty() ? "" : "; left " + end.killed_rest + " behind, which muster killed")));
  }
  return text;
}

std::string survivors_text(const JobReport& report) {
  if (report.survivors.empty()) return "";
  const auto more = report.survivors.size() - 1;
  return clipped(report.survivors.front()) +
         (more > 0 ? fmt::format(" (and {} more, see the status file)", more) : "");
}

std::string status_hint(const JobReport& report) {
  return report.status_path.empty() ? "" : "; status: " + report.status_path;
}

std::string logs_hint(const JobReport& report) {
  return report.log_folder.empty() ? "" : "; logs in " + report.log_folder;
}

}  // namespace muster::agent
