#include "rendezvous/server/operator_requests.hpp"

#include <fmt/format.h>

#include "rendezvous/server/status_json.hpp"

namespace muster::rendezvous {
namespace {

OperatorReply refuse(const std::string& why) { return {false, dump({{"error", why}})}; }

Event event_of(const OperatorRequest& request) {
  switch (request.verb) {
    case OperatorVerb::drain_node:
      return DrainNode{request.node};
    case OperatorVerb::scale:
      return Scale{request.min_nodes, request.max_nodes};
    case OperatorVerb::close_roster:
      return CloseRoster{};
    case OperatorVerb::clear_cooldown:
      return ClearCooldown{request.node};
    case OperatorVerb::stop_job:
      return StopJob{"musterctl stop"};
    case OperatorVerb::rehearse:
      return Rehearse{request.rank < 0 ? std::nullopt : std::optional<int>(request.rank), request.node,
                      request.signal_number};
    case OperatorVerb::status:
    case OperatorVerb::events:
      break;
  }
  return Tick{};
}

Json report(const JobTable& jobs, const OperatorRequest& request) {
  Json all = Json::array();
  for (const auto& [id, job] : jobs)
    if (request.job.empty() || request.job == id)
      all.push_back(request.verb == OperatorVerb::status ? status_json(*job) : events_json(*job));
  return {{"jobs", std::move(all)}};
}

}  // namespace

OperatorReply answer_operator(const JobTable& jobs, const OperatorRequest& request) {
  if (!request.job.empty() && !jobs.contains(request.job))
    return refuse(fmt::format("there is no job '{}' here", request.job));
  if (request.verb == OperatorVerb::status || request.verb == OperatorVerb::events)
    return {true, dump(report(jobs, request))};
  if (request.job.empty() && jobs.size() != 1)
    return refuse(fmt::format("there are {} jobs here: name one with --job", jobs.size()));
  const auto& job = request.job.empty() ? jobs.begin()->second : jobs.at(request.job);
  const auto answer = job->operate(event_of(request));
  if (!answer) return refuse(fmt::format("job {} is over", job->job().id()));
  return {answer->done, dump({{answer->done ? "done" : "error", answer->text}})};
}

}  // namespace muster::rendezvous
