#include "rendezvous/server/status_json.hpp"

namespace muster::rendezvous {
namespace {

const char* name_of(Phase phase) {
  switch (phase) {
    case Phase::gathering:
      return "gathering";
    case Phase::running:
      return "running";
    case Phase::draining:
      return "draining";
    case Phase::stopping:
      return "stopping";
    case Phase::over:
      return "over";
  }
  return "unknown";
}

}  // namespace

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json status_json(const HostedJob& job) {
  Json policy = Json::object();
  for (const auto& [name, value] : job.policy()) policy[name] = value;
  return {{"job", job.job().id()},
          {"phase", name_of(job.job().phase())},
          {"reason", job.job().reason(HostedJob::now())},
          {"created_unix_ms", job.created_unix_ms()},
          {"connected_nodes", job.connected()},
          {"policy", std::move(policy)}};
}

Json events_json(const HostedJob& job) {
  Json events = Json::array();
  for (const auto& event : job.events())
    events.push_back({{"unix_time_ms", event.unix_time_ms}, {"text", event.text}});
  return {{"job", job.job().id()}, {"events", std::move(events)}};
}

}  // namespace muster::rendezvous
