#include "agent/health/health_page.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace muster::agent {

namespace {

using Json = nlohmann::ordered_json;

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

Json worker_json(const WorkerVitals& worker) {
  Json json;
  json["rank"] = worker.rank;
  json["local_rank"] = worker.local_rank;
  json["pid"] = worker.pid;
  json["alive"] = worker.alive;
  json["step"] = worker.step >= 0 ? Json(worker.step) : Json(nullptr);
  json["since_progress_s"] = worker.since_progress ? Json(seconds(*worker.since_progress)) : Json(nullptr);
  json["stuck"] = worker.stuck;
  return json;
}

std::string stuck_sentence(const Vitals& vitals, Duration limit) {
  std::string text;
  for (const WorkerVitals& worker : vitals.workers)
    if (worker.stuck)
      text += fmt::format("{}rank {} (local {}, pid {}) told of no step for {}", text.empty() ? "" : "; ",
                          worker.rank, worker.local_rank, worker.pid, human(*worker.since_progress));
  return text + fmt::format("; {} is allowed", human(limit));
}

HealthAnswer as_answer(int status, const Json& json) {
  return {status, json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"};
}

}  // namespace

HealthAnswer answer_health(std::string_view target, const HealthSubject& subject, const Vitals& vitals) {
  target = target.substr(0, target.find('?'));
  if (target != "/health" && target != "/healthz" && target != "/")
    return as_answer(404, {{"error", "there is no such page: ask for /health"}});
  const bool healthy = vitals.healthy();
  Json json;
  json["healthy"] = healthy;
  json["state"] = word_for(vitals.state);
  json["why"] = healthy ? vitals.why : stuck_sentence(vitals, subject.progress_limit);
  json["job"] = subject.job;
  json["node"] = subject.node;
  json["round"] = vitals.round;
  json["world_size"] = vitals.world_size;
  json["restarts"] = vitals.restart_count;
  json["ranks"] = Json::array();
  for (const WorkerVitals& worker : vitals.workers) json["ranks"].push_back(worker_json(worker));
  return as_answer(healthy ? 200 : 503, json);
}

}  // namespace muster::agent
