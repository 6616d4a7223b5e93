#include "rendezvous/server/status_json.hpp"

#include <algorithm>

#include "base/endpoint.hpp"

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

double ms(Duration duration) { return std::chrono::duration<double, std::milli>(duration).count(); }

bool is_of(const Round& round, const NodeId& node) {
  const Seat* seat = round.seat(node);
  return seat != nullptr && !seat->gone;
}

std::string state_of(const HostedJob& job, const Member& member, const Seat* seat) {
  const bool has_round = job.job().round().has_value();
  // All were told of the end, and each goes when its workers are gone.
  if (job.over()) return job.session_of(member.offer.node) != nullptr ? "ended" : "left";
  if (!member.connected()) return "away";
  if (!member.leaving.empty()) return "leaving";
  if (member.stand == Stand::between) return "between rounds";
  // Its workers have ended, and it waits for those of the others.
  const bool between = has_round && is_of(*job.job().round(), member.offer.node);
  if (member.stand == Stand::ready) return between ? "between rounds" : has_round ? "spare" : "waiting";
  if (seat == nullptr) return "running";
  if (seat->failed) return "failed";
  if (seat->succeeded) return "succeeded";
  if (seat->stopped) return "stopped";
  return seat->safe ? "safe" : "running";
}

Json node_json(const HostedJob& job, const NodeId& node, const Member& member) {
  const auto& round = job.job().round();
  const Seat* seat = round && member.stand == Stand::seated ? round->seat(node) : nullptr;
  Json json{{"node", node},
            {"host", member.offer.host},
            {"address", member.offer.address},
            {"workers", member.offer.local_workers},
            {"state", state_of(job, member, seat)}};
  if (seat != nullptr) {
    json["group_rank"] = round->group_rank(node);
    json["first_rank"] = seat->first_rank;
    json["step"] = seat->step;
  }
  if (member.stand == Stand::ready && member.connected() && !job.over())
    json["why"] = job.job().waiting_reason(node, HostedJob::now());
  if (!member.leaving.empty()) json["leaving"] = member.leaving;
  if (!member.away_reason.empty() && !member.connected()) json["away"] = member.away_reason;
  if (const auto* session = job.session_of(node)) json["silent_for_ms"] = ms(session->silent_for());
  return json;
}

// Of the round's nodes those that are not in the job any more: by the exit barrier's limit, for one.
void add_gone(const HostedJob& job, Json& members) {
  if (!job.job().round()) return;
  for (const Seat& seat : job.job().round()->state().seats) {
    if (seat.node.empty() || job.job().membership().find(seat.node) != nullptr) continue;
    members.push_back({{"node", seat.node},
                       {"workers", seat.local_workers},
                       {"state", seat.succeeded ? "succeeded and left" : "gone"},
                       {"group_rank", job.job().round()->group_rank(seat.node)},
                       {"first_rank", seat.first_rank},
                       {"step", seat.step}});
  }
}

// Beyond the nodes of the live round.
std::size_t spares(const Job& job) {
  if (!job.round()) return 0;
  const auto& all = job.membership().all();
  return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [&](const auto& entry) {
    return entry.second.stand == Stand::ready && !is_of(*job.round(), entry.first);
  }));
}

Json round_json(const RoundRecord& round) {
  Json json{{"round", round.number},  {"formed_unix_ms", round.unix_time_ms},
            {"nodes", round.nodes},   {"workers", round.workers},
            {"reason", round.reason}, {"forming_ms", ms(round.forming_took)}};
  const auto end_of_work = round.drain_at ? round.drain_at : round.stop_at ? round.stop_at : round.ended_at;
  if (end_of_work) json["ran_ms"] = ms(*end_of_work - round.formed_at);
  if (round.drain_at && round.stop_at) json["drain_ms"] = ms(*round.stop_at - *round.drain_at);
  if (round.stop_at && round.ended_at) json["stop_ms"] = ms(*round.ended_at - *round.stop_at);
  if (!round.end_reason.empty()) json["end_reason"] = round.end_reason;
  return json;
}

}  // namespace

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json summary_json(const HostedJob& hosted) {
  const Job& job = hosted.job();
  const auto snapshot = job.snapshot(HostedJob::now());
  const auto& round = snapshot.round;
  return {{"job", job.id()},
          {"phase", name_of(job.phase())},
          {"reason", job.reason(HostedJob::now())},
          {"round", snapshot.last_round},
          {"nodes", round ? static_cast<int>(round->seats.size()) : 0},
          {"nodes_here", job.membership().all().size()},
          {"spares", spares(job)},
          {"min_nodes", job.policy().min_nodes},
          {"max_nodes", job.policy().max_nodes},
          {"workers", round ? round->world_size : 0},
          {"restarts", snapshot.ledger.count},
          {"max_restarts", job.policy().max_restarts},
          {"phase_for_ms", ms(HostedJob::now() - snapshot.phase_since)},
          {"created_unix_ms", hosted.identity().created_unix_ms}};
}

Json status_json(const HostedJob& hosted) {
  auto json = summary_json(hosted);
  const Job& job = hosted.job();
  if (const auto& round = job.round())
    json["master"] = Endpoint{round->state().master_addr, round->state().master_port}.text();
  json["members"] = Json::array();
  for (const auto& [node, member] : job.membership().all())
    json["members"].push_back(node_json(hosted, node, member));
  add_gone(hosted, json["members"]);
  json["rounds"] = Json::array();
  for (const auto& round : hosted.history().rounds()) json["rounds"].push_back(round_json(round));
  json["policy"] = Json::object();
  for (const auto& [name, value] : hosted.identity().policy) json["policy"][name] = value;
  return json;
}

Json events_json(const HostedJob& job) {
  Json events = Json::array();
  for (const auto& event : job.history().events())
    events.push_back({{"unix_time_ms", event.unix_time_ms}, {"text", event.text}});
  return {{"job", job.job().id()}, {"events", std::move(events)}};
}

}  // namespace muster::rendezvous
