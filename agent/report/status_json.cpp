// status.json. Times are milliseconds since 1970; the grammar is in docs/status-json.md.
#include <nlohmann/json.hpp>

#include "agent/report/report.hpp"

namespace muster::agent {

namespace {

using Json = nlohmann::ordered_json;

const char* word(rendezvous::OutcomeKind kind) {
  using rendezvous::OutcomeKind;
  switch (kind) {
    case OutcomeKind::succeeded:
      return "succeeded";
    case OutcomeKind::failed:
    case OutcomeKind::node_lost:
      return "failed";
    case OutcomeKind::stopped:
      return "stopped";
    case OutcomeKind::preempted:
      return "preempted";
    case OutcomeKind::rendezvous_failed:
      return "rendezvous_failed";
  }
  return "failed";
}

void add_end(Json& json, const std::optional<ExitCause>& end) {
  json["exit"] = nullptr;
  json["signal"] = nullptr;
  json["start_error"] = nullptr;
  json["ended_by"] = nullptr;
  if (!end) return;
  json["ended_by"] = end->stopped_by_muster ? "muster" : "itself";
  switch (end->kind) {
    case ExitCause::Kind::exited:
      json["exit"] = end->value;
      break;
    case ExitCause::Kind::signalled:
      json["signal"] = signal_name(end->value);
      if (!end->stopped_by_muster) json["ended_by"] = "signal";
      break;
    case ExitCause::Kind::start_failed:
      json["start_error"] = errno_text(end->value);
      break;
  }
  if (!end->evidence.empty()) json["evidence"] = end->evidence;
}

// None: it could not be started.
Json pid_json(int pid) { return pid > 0 ? Json(pid) : Json(nullptr); }

Json worker_json(const WorkerRecord& worker) {
  Json json;
  json["round"] = worker.round;
  json["rank"] = worker.rank;
  json["local_rank"] = worker.local_rank;
  json["pid"] = pid_json(worker.pid);
  json["started_ms"] = worker.started_unix_ms;
  json["ended_ms"] = worker.end ? Json(worker.ended_unix_ms) : Json(nullptr);
  add_end(json, worker.end);
  json["log"] = worker.log_path;
  json["last_output_ms"] = worker.last_output_unix_ms > 0 ? Json(worker.last_output_unix_ms) : Json(nullptr);
  json["lost_log_bytes"] = worker.lost_log_bytes;
  json["killed_rest"] = worker.killed_rest.empty() ? Json(nullptr) : Json(worker.killed_rest);
  return json;
}

Json failure_json(const rendezvous::WorkerFailure& failure) {
  Json json;
  json["node"] = failure.node;
  json["host"] = failure.host;
  json["round"] = failure.round;
  json["rank"] = failure.rank;
  json["local_rank"] = failure.local_rank;
  json["pid"] = pid_json(failure.pid);
  json["ended_ms"] = failure.unix_time_ms;
  json["lived_ms"] = failure.lived_ms;
  add_end(json, failure.cause);
  json["how"] = failure.cause.sentence();
  json["message"] = failure.message;
  json["last_lines"] = failure.last_lines;
  json["log"] = failure.log_path;
  return json;
}

Json round_json(const RoundTimes& round) {
  Json json;
  json["round"] = round.round;
  json["nodes"] = round.nodes;
  json["world_size"] = round.world_size;
  json["why"] = round.reason;
  json["phases_ms"] = Json::object();
  for (const PhaseTime& phase : round.phases) json["phases_ms"][phase.name] = phase.ms;
  return json;
}

Json stall_json(const Stall& stall) {
  Json json;
  json["round"] = stall.round;
  json["ms"] = stall.unix_ms;
  json["why"] = stall.sentence;
  if (stall.over_unix_ms != 0) json["over_ms"] = stall.over_unix_ms;
  return json;
}

}  // namespace

std::string status_json(const JobReport& report) {
  Json json;
  json["format"] = 1;
  json["job"] = report.run_id;
  json["node"] = report.node;
  json["reason"] = word(report.outcome.kind);
  json["message"] = report.outcome.reason;
  json["exit_code"] = exit_code_of(report);
  json["stop_signal"] = report.stop_signal > 0 ? Json(signal_name(report.stop_signal)) : Json(nullptr);
  json["max_restarts"] = report.outcome.max_restarts;
  json["restarts"] = report.outcome.restarts;
  json["first_failure"] =
      report.outcome.first_failure ? failure_json(*report.outcome.first_failure) : Json(nullptr);
  json["rounds"] = Json::array();
  for (const RoundTimes& round : report.rounds) json["rounds"].push_back(round_json(round));
  json["workers_left_out"] = report.workers_left_out;
  json["workers"] = Json::array();
  for (const WorkerRecord& worker : report.workers) json["workers"].push_back(worker_json(worker));
  json["survivors"] = report.survivors;
  json["stalls"] = Json::array();
  for (const Stall& stall : report.stalls) json["stalls"].push_back(stall_json(stall));
  json["log_folder"] = report.log_folder;
  json["lost_console_lines"] = report.lost_console_lines;
  // A worker may write any bytes to its stderr: those that are not UTF-8 become U+FFFD.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace muster::agent
