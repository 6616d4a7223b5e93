#include "rendezvous/server/job_history.hpp"

#include <fmt/format.h>

#include "base/endpoint.hpp"

namespace muster::rendezvous {

std::string JobHistory::note(std::string text, Time time) {
  events_.push_back({time.unix_time_ms, text});
  if (events_.size() > kMaxEvents) events_.pop_front();
  return text;
}

std::optional<std::string> JobHistory::heard(const NodeId& node, const AgentMessage& message, Time time) {
  if (const auto* join = std::get_if<Join>(&message))
    return note(fmt::format("node {} ({}) joins with {} workers", node, join->offer.address,
                            join->offer.local_workers),
                time);
  if (const auto* resume = std::get_if<Resume>(&message))
    return note(fmt::format("node {} is back in round {}, its workers {}", node, resume->round,
                            resume->workers_alive ? "alive" : "not alive"),
                time);
  if (const auto* leave = std::get_if<Leave>(&message))
    return note(fmt::format("node {} leaves: {}", node, leave->reason), time);
  if (const auto* failed = std::get_if<WorkerFailed>(&message))
    return note(
        fmt::format("rank {} on node {} {}", failed->failure.rank, node, failed->failure.cause.sentence()),
        time);
  return std::nullopt;
}

std::optional<std::string> JobHistory::told(const DaemonMessage& message, Time time) {
  if (const auto* assignment = std::get_if<Assignment>(&message)) return formed(*assignment, time);
  auto* round = rounds_.empty() ? nullptr : &rounds_.back();
  if (const auto* drain = std::get_if<Drain>(&message); drain && round && drain->round == round->number) {
    if (round->drain_at) return std::nullopt;
    round->drain_at = time.now;
    round->end_reason = drain->reason;
    return note(fmt::format("round {} drains: {}", drain->round, drain->reason), time);
  }
  if (const auto* stop = std::get_if<StopWorkers>(&message); stop && round && stop->round == round->number) {
    if (round->stop_at) return std::nullopt;
    round->stop_at = time.now;
    round->end_reason = stop->reason;
    return note(fmt::format("round {} stops: {}", stop->round, stop->reason), time);
  }
  return std::nullopt;
}

std::optional<std::string> JobHistory::formed(const Assignment& a, Time time) {
  if (!rounds_.empty() && rounds_.back().number == a.round) return std::nullopt;
  if (!rounds_.empty()) rounds_.back().ended_at = time.now - a.forming_took;
  RoundRecord record;
  record.number = a.round;
  record.nodes = a.group_world_size;
  record.workers = a.world_size;
  record.reason = a.reason;
  record.unix_time_ms = time.unix_time_ms;
  record.forming_took = a.forming_took;
  record.formed_at = time.now;
  rounds_.push_back(std::move(record));
  if (rounds_.size() > kMaxRounds) rounds_.pop_front();
  return note(fmt::format("round {}: {} nodes, {} workers, master {}, formed in {}: {}", a.round,
                          a.group_world_size, a.world_size, Endpoint{a.master_addr, a.master_port}.text(),
                          human(a.forming_took), a.reason),
              time);
}

void JobHistory::ended(Time time) {
  if (!rounds_.empty() && !rounds_.back().ended_at) rounds_.back().ended_at = time.now;
}

}  // namespace muster::rendezvous
