#include "agent/report/oom_evidence.hpp"

#include <fmt/format.h>

#include <sstream>

#include "base/endpoint.hpp"
#include "base/system_files.hpp"

namespace muster::agent {

namespace {

constexpr std::uint64_t kNoLimitBytes = std::uint64_t{1} << 60;  // v1 writes "no limit" as a huge number

std::optional<std::uint64_t> read_bytes(const std::filesystem::path& path) {
  const auto value = parse_integer(first_line_of_file(path), 0, INT64_MAX);  // "max" is no number: no limit
  if (!value) return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

std::string gib(std::uint64_t bytes) {
  constexpr double kMiB = 1024.0 * 1024.0;
  const double mib = static_cast<double>(bytes) / kMiB;
  return mib < 1024 ? fmt::format("{:.0f} MiB", mib) : fmt::format("{:.1f} GiB", mib / 1024);
}

std::string memory_text(const MemoryCounters& counters) {
  if (counters.peak_bytes && counters.limit_bytes)
    return fmt::format(" (peak {} of {})", gib(*counters.peak_bytes), gib(*counters.limit_bytes));
  if (counters.limit_bytes) return fmt::format(" (limit {})", gib(*counters.limit_bytes));
  return "";
}

}  // namespace

std::optional<std::uint64_t> parse_oom_kills(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("oom_kill ")) continue;
    const auto count = parse_integer(line.substr(9), 0, INT64_MAX);
    if (count) return static_cast<std::uint64_t>(*count);
  }
  return std::nullopt;
}

std::optional<MemoryCgroup> parse_memory_cgroup(const std::string& proc_cgroup) {
  std::optional<MemoryCgroup> found;
  for (const CgroupLine& line : parse_cgroup_lines(proc_cgroup)) {
    if (line.is_v2() && !found) found = MemoryCgroup{line.path, false};
    if (line.controls("memory"))
      found = MemoryCgroup{"/memory" + line.path, true};  // on a mixed set-up memory is where v1 has it
  }
  return found;
}

std::string oom_sentence(const MemoryCounters& before, const MemoryCounters& after) {
  const std::string who = after.of_whole_machine ? "the machine" : "its cgroup";
  if (after.oom_kills <= before.oom_kills) return who + " counted no OOM kill";
  const auto kills = after.oom_kills - before.oom_kills;
  return fmt::format("{} counted {} OOM kill{}{}", who, kills, kills == 1 ? "" : "s", memory_text(after));
}

bool tells_of_oom_kill(const std::string& evidence) {
  return evidence.find("OOM kill") != std::string::npos &&
         evidence.find("counted no OOM kill") == std::string::npos;
}

OomEvidence::OomEvidence(std::filesystem::path cgroup_root, std::filesystem::path proc)
    : cgroup_root_(std::move(cgroup_root)), proc_(std::move(proc)), before_(read()) {}

std::string OomEvidence::since_last_time() {
  const auto after = read();
  if (!after || !before_ || after->of_whole_machine != before_->of_whole_machine) return "";
  const std::string sentence = oom_sentence(*before_, *after);
  before_ = after;
  return sentence;
}

std::optional<MemoryCounters> OomEvidence::read() const {
  const auto cgroup = parse_memory_cgroup(text_of_file(proc_ / "self/cgroup"));
  if (cgroup) {
    // In a container the path is the host's, but the mount shows the container's own cgroup as its root.
    for (const std::string& path : {cgroup->path, std::string(cgroup->v1 ? "/memory" : "/")}) {
      const auto folder = cgroup_root_ / path.substr(1);
      const auto kills =
          parse_oom_kills(text_of_file(folder / (cgroup->v1 ? "memory.oom_control" : "memory.events")));
      if (!kills) continue;
      MemoryCounters counters;
      counters.oom_kills = *kills;
      counters.peak_bytes = read_bytes(folder / (cgroup->v1 ? "memory.max_usage_in_bytes" : "memory.peak"));
      counters.limit_bytes = read_bytes(folder / (cgroup->v1 ? "memory.limit_in_bytes" : "memory.max"));
      if (counters.limit_bytes && *counters.limit_bytes >= kNoLimitBytes) counters.limit_bytes.reset();
      return counters;
    }
  }
  const auto kills = parse_oom_kills(text_of_file(proc_ / "vmstat"));
  if (!kills) return std::nullopt;
  MemoryCounters counters;
  counters.oom_kills = *kills;
  counters.of_whole_machine = true;
  return counters;
}

}  // namespace muster::agent
