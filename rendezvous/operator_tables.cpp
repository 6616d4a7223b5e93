#include "rendezvous/operator_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/time.hpp"

namespace muster::rendezvous {
namespace {

using Json = nlohmann::ordered_json;
using Row = std::vector<std::string>;

std::string text(const Json& json, const char* key) { return json.value(key, std::string()); }
long number(const Json& json, const char* key) { return json.value(key, 0L); }

std::string ago(const Json& json, const char* key) {
  if (!json.contains(key)) return "-";
  return human(
      std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(json.value(key, 0.0))));
}

// Columns as wide as their widest cell; nothing is padded at the end of a line.
std::string table(const std::vector<Row>& rows, const std::string& indent) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    out += indent;
    for (std::size_t i = 0; i < row.size(); ++i)
      out += i + 1 == row.size() ? row[i] : fmt::format("{:<{}}  ", row[i], widths[i]);
    out += '\n';
  }
  return out;
}

Row job_row(const Json& job) {
  const auto min = number(job, "min_nodes");
  const auto max = number(job, "max_nodes");
  const auto spares = number(job, "spares");
  const auto range = min == max ? std::to_string(max) : fmt::format("{}:{}", min, max);
  return {text(job, "job"),
          text(job, "phase"),
          std::to_string(number(job, "round")),
          fmt::format("{} of {}{}", number(job, "nodes_here") - spares, range,
                      spares > 0 ? fmt::format(" +{} spare", spares) : ""),
          std::to_string(number(job, "workers")),
          fmt::format("{} of {}", number(job, "restarts"), number(job, "max_restarts")),
          ago(job, "phase_for_ms"),
          text(job, "reason")};
}

Row member_row(const Json& member) {
  std::string ranks = "-";
  if (member.contains("first_rank")) {
    const auto first = number(member, "first_rank");
    const auto last = first + number(member, "workers") - 1;
    ranks = first == last ? std::to_string(first) : fmt::format("{}-{}", first, last);
  }
  const auto step = member.value("step", -1L);
  return {text(member, "node"),  member.value("address", std::string("-")), ranks,
          text(member, "state"), step < 0 ? "-" : std::to_string(step),     ago(member, "silent_for_ms")};
}

std::string status_text(const Json& answer) {
  const auto jobs = answer.value("jobs", Json::array());
  if (jobs.empty()) return "no jobs\n";
  std::vector<Row> rows{{"JOB", "PHASE", "ROUND", "NODES", "WORKERS", "RESTARTS", "SINCE", "WHY"}};
  for (const auto& job : jobs) rows.push_back(job_row(job));
  auto out = table(rows, "");
  for (const auto& job : jobs) {
    const auto members = job.value("members", Json::array());
    if (members.empty()) continue;
    if (jobs.size() > 1) out += text(job, "job") + "\n";
    std::vector<Row> nodes{{"NODE", "ADDRESS", "RANKS", "STATE", "STEP", "LAST SEEN"}};
    for (const auto& member : members) nodes.push_back(member_row(member));
    out += table(nodes, "  ");
  }
  return out;
}

std::string events_text(const Json& answer) {
  std::string out;
  for (const auto& job : answer.value("jobs", Json::array()))
    for (const auto& event : job.value("events", Json::array())) {
      const std::chrono::system_clock::time_point when{
          std::chrono::milliseconds(number(event, "unix_time_ms"))};
      out += fmt::format("{}  {}  {}\n", clock_text(when), text(job, "job"), text(event, "text"));
    }
  return out.empty() ? "no events\n" : out;
}

}  // namespace

std::string operator_text(OperatorVerb verb, const Json& answer) {
  if (verb == OperatorVerb::status) return status_text(answer);
  if (verb == OperatorVerb::events) return events_text(answer);
  return text(answer, "done") + "\n";
}

}  // namespace muster::rendezvous
