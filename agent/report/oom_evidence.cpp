#include "agent/report/oom_evidence.hpp"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "base/endpoint.hpp"

namespace muster::agent {

namespace {

constexpr std::uint64_t kNoLimitBytes = std::uint64_t{1} << 60;  // v1 writes "no limit" as a huge number

std::optional<std::string> read_text(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::optional<std::uint64_t> read_bytes(const std::filesystem::path& path) {
  auto text = read_text(path);
  if (!text) return std::nullopt;
  while (!text->empty() && text->back() == '\n') text->pop_back();
  const auto value = parse_integer(*text, 0, INT64_MAX);  // "max" is no number: no limit
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
  std::istringstream lines(proc_cgroup);
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty() && !found) found = MemoryCgroup{path, false};
    if (("," + controllers + ",").find(",memory,") != std::string::npos)
      found = MemoryCgroup{"/memory" + path, true};  // on a mixed set-up memory is where v1 has it
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
  const auto proc_cgroup = read_text(proc_ / "self/cgroup");
  const auto cgroup = proc_cgroup ? parse_memory_cgroup(*proc_cgroup) : std::nullopt;
  if (cgroup) {
    // In a container the path is the host's, but the mount shows the container's own cgroup as its root.
    for (const std::string& path : {cgroup->path, std::string(cgroup->v1 ? "/memory" : "/")}) {
      const auto folder = cgroup_root_ / path.substr(1);
      const auto text = read_text(folder / (cgroup->v1 ? "memory.oom_control" : "memory.events"));
      const auto kills = text ? parse_oom_kills(*text) : std::nullopt;
      if (!kills) continue;
      MemoryCounters counters;
      counters.oom_kills = *kills;
      counters.peak_bytes = read_bytes(folder / (cgroup->v1 ? "memory.max_usage_in_bytes" : "memory.peak"));
      counters.limit_bytes = read_bytes(folder / (cgroup->v1 ? "memory.limit_in_bytes" : "memory.max"));
      if (counters.limit_bytes && *counters.limit_bytes >= kNoLimitBytes) counters.limit_bytes.reset();
      return counters;
    }
  }
  const auto vmstat = read_text(proc_ / "vmstat");
  const auto kills = vmstat ? parse_oom_kills(*vmstat) : std::nullopt;
  if (!kills) return std::nullopt;
  MemoryCounters counters;
  counters.oom_kills = *kills;
  counters.of_whole_machine = true;
  return counters;
}

}  // namespace muster::agent
