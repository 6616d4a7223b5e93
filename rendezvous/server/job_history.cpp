#include "rendezvous/server/job_history.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/endpoint.hpp"
#include "rendezvous/core/sentences.hpp"

namespace muster::rendezvous {
namespace {

template <class Item>
std::deque<Item> newest(const std::deque<Item>& all) {
  const auto count = std::min(all.size(), JobHistory::kKept);
  return {all.end() - static_cast<std::ptrdiff_t>(count), all.end()};
}

}  // namespace

JobHistory::State JobHistory::State::shifted_by(Duration by) && {
  for (auto& round : rounds) {
    round.formed_at += by;
    for (auto* at : {&round.drain_at, &round.stop_at, &round.ended_at})
      if (*at) **at += by;
  }
  return std::move(*this);
}

JobHistory::State JobHistory::kept() const { return {newest(events_), newest(rounds_)}; }

std::string JobHistory::note(std::string text, Time time) {
  events_.push_back({time.unix_time_ms, text});
  if (events_.size() > kMaxEvents) events_.pop_front();
  return text;
}

// A node joins once; later it only says that it is ready for another round.
std::optional<std::string> JobHistory::joined(const NodeOffer& offer, const Member* known, Time time) {
  const bool same = known != nullptr && known->offer.incarnation == offer.incarnation;
  if (same && known->connected()) return std::nullopt;
  if (same) return note(fmt::format("node {} is back and waits for a round", offer.node), time);
  return note(fmt::format("node {} ({}) joins with {}", offer.node, offer.address,
                          count_of(offer.local_workers, "worker")),
              time);
}

std::optional<std::string> JobHistory::heard(const NodeId& node, const AgentMessage& message,
                                             const Member* known, Time time) {
  if (const auto* join = std::get_if<Join>(&message)) return joined(join->offer, known, time);
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
  const auto* stop = std::get_if<StopWorkers>(&message);
  if (stop && !stop->reason.empty() && round && stop->round == round->number) {
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
  return note(fmt::format("round {}: {}, {}, master {}, formed in {}: {}", a.round,
                          count_of(a.group_world_size, "node"), count_of(a.world_size, "worker"),
                          Endpoint{a.master_addr, a.master_port}.text(), human(a.forming_took), a.reason),
              time);
}

std::string JobHistory::ended(const Outcome& outcome, Time time) {
  if (!rounds_.empty() && !rounds_.back().ended_at) rounds_.back().ended_at = time.now;
  return note("the job is over: " + outcome.reason, time);
}

std::optional<std::string> JobHistory::answered(const Answer& answer, Time time) {
  if (!answer.done) return std::nullopt;
  return note(answer.event.empty() ? "by an operator: " + answer.text : answer.event, time);
}

void JobHistory::before(const Event& event, const Job& job, Time time) {
  if (const auto* from = std::get_if<FromAgent>(&event))
    heard(from->node, from->message, job.membership().find(from->node), time);
  if (const auto* lost = std::get_if<ConnectionLost>(&event))
    note(fmt::format("the connection of node {} ended: {}", lost->node, lost->reason), time);
}

void JobHistory::after(const std::vector<Effect>& effects, Time time) {
  for (const auto& effect : effects) {
    if (const auto* to_agent = std::get_if<ToAgent>(&effect)) told(to_agent->message, time);
    if (const auto* over = std::get_if<JobOver>(&effect)) ended(over->outcome, time);
    if (const auto* answer = std::get_if<Answer>(&effect)) answered(*answer, time);
  }
}

}  // namespace muster::rendezvous
