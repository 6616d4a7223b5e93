#include "rendezvous/server/hosted_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/bare_address.hpp"
#include "base/endpoint.hpp"
#include "base/exit_cause.hpp"
#include "base/time.hpp"
#include "rendezvous/protocol/policy_values.hpp"
#include "rendezvous/server/store_clients.hpp"

namespace muster::rendezvous {
namespace {

constexpr Duration kRehearsalLimit = std::chrono::seconds(10);  // a launcher has a second for its last words

JobHistory::Time time_now() { return {HostedJob::now(), unix_time_ms()}; }

LossKind loss_kind(Connection::Ending::Kind kind) {
  switch (kind) {
    case Connection::Ending::Kind::closed:
      return LossKind::closed;
    case Connection::Ending::Kind::silent:
      return LossKind::silent;
    case Connection::Ending::Kind::broken:
    case Connection::Ending::Kind::slow:
    case Connection::Ending::Kind::not_secured:
      break;
  }
  return LossKind::broken;
}

const NodeOffer* offer_in(const AgentMessage& message) {
  if (const auto* join = std::get_if<Join>(&message)) return &join->offer;
  if (const auto* resume = std::get_if<Resume>(&message)) return &resume->offer;
  return nullptr;
}

std::string host_of(const std::string& peer) {
  const auto endpoint = parse_endpoint(peer, 0);
  return endpoint ? endpoint->host : peer;
}

}  // namespace

HostedJob::HostedJob(const JobSurroundings& around, Job job, JobIdentity identity, JobHistory history)
    : around_(around),
      timer_(around.io),
      job_(std::move(job)),
      identity_(std::move(identity)),
      history_(std::move(history)) {
  if (job_.over()) over_since_ = now();
}

void HostedJob::come_back() {
  log_line(history_.note("the daemon is back from its journal", time_now()));
  if (!over()) step(Restarted{});
}

SnapshotRecord HostedJob::snapshot() const {
  return {identity_, job_.snapshot(now()), unix_time_ms(), history_.kept()};
}

void HostedJob::make_way(const Hello& hello, Duration old_after) {
  if (over()) return;
  if (const auto found = sessions_.find(hello.node); found != sessions_.end()) {
    const auto old = found->second;
    if (old->incarnation() == hello.incarnation || old->silent_for() < old_after) return;
    sessions_.erase(found);
    turned_away_.erase(hello.node);
    old->abort();
  }
  const Member* member = job_.membership().find(hello.node);
  if (!member || member->offer.incarnation == hello.incarnation) return;
  log_line(history_.note(fmt::format("the agent of node {} was started anew", hello.node), time_now()));
  step(ConnectionLost{hello.node, LossKind::silent,
                      "its agent was started anew" + rehearsed_end_of(hello.node)});
}

std::optional<Refused> HostedJob::refusal(const Hello& hello) {
  const auto differ = differences(identity_.policy, hello.policy);
  if (!differ.empty()) return Refused{RefusalCode::incompatible_policy, differ};
  const auto found = sessions_.find(hello.node);
  if (found == sessions_.end()) return std::nullopt;
  const auto old = found->second;
  if (old->incarnation() != hello.incarnation) {
    turned_away_[hello.node] = hello.incarnation;
    return Refused{RefusalCode::duplicate_node,
                   fmt::format("a node '{}' is here already, connected from {}; give this one another name",
                               hello.node, old->peer())};
  }
  sessions_.erase(found);
  old->abort();
  return std::nullopt;
}

void HostedJob::attach(const std::shared_ptr<Session>& session) {
  session->belongs_to(shared_from_this());
  sessions_[session->node()] = session;
  auto& known = identity_.incarnations[session->node()];
  if (known != session->incarnation()) {
    known = session->incarnation();
    if (around_.journal) around_.journal->append_incarnation(job_.id(), session->node(), known);
  }
  around_.log->debug("job {}: node {} connected from {}", job_.id(), session->node(), session->peer());
}

bool HostedJob::turned_away(const Hello& hello) const {
  const auto found = turned_away_.find(hello.node);
  return found != turned_away_.end() && found->second == hello.incarnation;
}

bool HostedJob::knows(const NodeId& node, const std::string& incarnation) const {
  const auto found = identity_.incarnations.find(node);
  return found != identity_.incarnations.end() && found->second == incarnation;
}

bool HostedJob::welcome_late(const Hello& hello) {
  if (identity_.incarnations.contains(hello.node)) return false;
  latecomers_.insert(hello.node);
  return true;
}

const Session* HostedJob::session_of(const NodeId& node) const {
  const auto found = sessions_.find(node);
  return found == sessions_.end() ? nullptr : found->second.get();
}

void HostedJob::take(Session& session, const AgentMessage& message) {
  if (over() && latecomers_.contains(session.node()))
    return session.send(encode(DaemonMessage(JobEnded{job_.outcome()})));
  const auto* offer = offer_in(message);
  if (offer != nullptr && offer->node != session.node())
    return session.refuse({RefusalCode::malformed,
                           fmt::format("node '{}' cannot speak for node '{}'", session.node(), offer->node)});
  if (offer != nullptr) {
    if (const auto refused = job_.refusal(*offer, now())) {
      sessions_.erase(session.node());
      return session.refuse(*refused);
    }
  }
  log_line(history_.heard(session.node(), message, job_.membership().find(session.node()), time_now()));
  step(FromAgent{session.node(), message});
}

void HostedJob::detach(Session& session, const Connection::Ending& ending) {
  const auto found = sessions_.find(session.node());
  if (found == sessions_.end() || found->second.get() != &session) return;
  const auto keep_alive = found->second;
  sessions_.erase(found);
  if (over()) return;
  turned_away_.erase(session.node());  // it was the dead one
  const std::string why = ending.why + rehearsed_end_of(session.node());
  log_line(history_.note(
      fmt::format("the connection of node {} from {} ended: {}", session.node(), session.peer(), why),
      time_now()));
  step(ConnectionLost{session.node(), loss_kind(ending.kind), why});
}

void HostedJob::note_rehearsal(const NodeId& node, const DaemonMessage& message) {
  const auto* fault = std::get_if<Inject>(&message);
  const Session* session = session_of(node);
  if (fault == nullptr || fault->rank || session == nullptr) return;
  rehearsals_[node] = {session->incarnation(), fault->signal_number, now()};
}

/// What its loss is told with if its launcher has just had such a signal; nothing otherwise. A container's first
/// process survives it, and what becomes of that one later has other causes.
std::string HostedJob::rehearsed_end_of(const NodeId& node) const {
  const auto found = rehearsals_.find(node);
  if (found == rehearsals_.end() || now() > found->second.at + kRehearsalLimit) return "";
  if (!knows(node, found->second.incarnation)) return "";  // another agent has come since
  return fmt::format("; {} to its launcher, rehearsed by musterctl chaos",
                     signal_name(found->second.signal_number));
}

std::optional<Answer> HostedJob::operate(const Event& event) {
  if (over()) return std::nullopt;
  auto answer = step(event);
  if (around_.journal) around_.journal->flush();
  return answer;
}

std::optional<Answer> HostedJob::step(const Event& event) {
  const auto at = now();
  const bool was_over = over();
  const bool matters = job_.matters(event);
  auto effects = job_.step(event, at);
  std::optional<Answer> answer;
  for (const auto& effect : effects)
    if (const auto* given = std::get_if<Answer>(&effect)) answer = *given;
  arm();
  if (around_.journal == nullptr || was_over) {
    carry_out(std::move(effects));
    return answer;
  }
  if (matters) around_.journal->append_event(job_.id(), event, at);
  if (!effects.empty())
    around_.journal->when_written(
        [self = shared_from_this(), effects = std::move(effects)] { self->carry_out(effects); });
  return answer;
}

// Delivering can itself lead to events (a peer that does not read is cut), whose effects come after those
// that are still to be delivered.
void HostedJob::carry_out(std::vector<Effect> effects) {
  std::move(effects.begin(), effects.end(), std::back_inserter(outbox_));
  if (delivering_) return;
  delivering_ = true;
  while (!outbox_.empty()) {
    const auto effect = std::move(outbox_.front());
    outbox_.pop_front();
    if (const auto* to_agent = std::get_if<ToAgent>(&effect)) deliver(to_agent->node, to_agent->message);
    if (const auto* end = std::get_if<JobOver>(&effect)) note_end(end->outcome);
    if (const auto* answer = std::get_if<Answer>(&effect)) log_line(history_.answered(*answer, time_now()));
  }
  delivering_ = false;
}

void HostedJob::note_end(const Outcome& outcome) {
  over_since_ = now();
  log_line(history_.ended(outcome, time_now()));
}

void HostedJob::deliver(const NodeId& node, const DaemonMessage& message) {
  log_line(history_.told(message, time_now()));
  const auto found = sessions_.find(node);
  note_rehearsal(node, message);
  if (found == sessions_.end()) return;  // it says what it has when it is back, and is answered then
  const auto session = found->second;
  if (const auto* refused = std::get_if<Refused>(&message)) {
    sessions_.erase(found);
    return session->refuse(*refused);
  }
  const auto* assignment = std::get_if<Assignment>(&message);
  if (assignment != nullptr && assignment->group_rank == 0) name_store_clients(*session, *assignment);
  session->send(encode(message));
}

/// All members of a round that has just been formed are connected; when one is not any more, nothing is said.
void HostedJob::name_store_clients(Session& session, const Assignment& assignment) const {
  if (!job_.round() || job_.round()->number() != assignment.round) return;
  std::vector<NodeAddresses> nodes;
  std::vector<StoreNode> named;
  for (const Seat& seat : job_.round()->state().seats) {
    const Member* member = job_.membership().find(seat.node);
    const Session* its = session_of(seat.node);
    if (member == nullptr || its == nullptr) return;
    nodes.push_back({member->offer.address, host_of(its->peer()), its->addresses()});
    const std::string address = bare_text(member->offer.address);
    named.push_back({seat.node, address.size() <= kMaxStoreAddressBytes ? address : "", seat.first_rank,
                     seat.local_workers});
  }
  if (named.size() < 2 || named.size() > kMaxStoreNodes) named.clear();
  session.send(encode(StoreClients{assignment.round, store_clients(nodes), std::move(named)}));
}

void HostedJob::log_line(const std::optional<std::string>& line) {
  if (line) around_.log->info("job {}: {}", job_.id(), *line);
}

void HostedJob::arm() {
  const auto wake_at = job_.wake_at();
  if (wake_at == armed_for_) return;
  armed_for_ = wake_at;
  timer_.cancel();
  if (!wake_at) return;
  timer_.expires_at(*wake_at);
  timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (error || !self) return;
    self->armed_for_.reset();
    self->step(Tick{});
  });
}

}  // namespace muster::rendezvous
