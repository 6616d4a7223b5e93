#include "rendezvous/server/hosted_job.hpp"

#include <fmt/format.h>

#include "base/endpoint.hpp"
#include "rendezvous/protocol/policy_values.hpp"

namespace muster::rendezvous {
namespace {

std::int64_t unix_time_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

LossKind loss_kind(Connection::Ending::Kind kind) {
  switch (kind) {
    case Connection::Ending::Kind::closed:
      return LossKind::closed;
    case Connection::Ending::Kind::silent:
      return LossKind::silent;
    case Connection::Ending::Kind::broken:
    case Connection::Ending::Kind::slow:
      break;
  }
  return LossKind::broken;
}

const NodeOffer* offer_in(const AgentMessage& message) {
  if (const auto* join = std::get_if<Join>(&message)) return &join->offer;
  if (const auto* resume = std::get_if<Resume>(&message)) return &resume->offer;
  return nullptr;
}

}  // namespace

HostedJob::HostedJob(boost::asio::io_context& io, std::shared_ptr<spdlog::logger> log, Job job,
                     std::vector<PolicyValue> policy, std::uint64_t incarnation)
    : log_(std::move(log)),
      timer_(io),
      job_(std::move(job)),
      policy_(std::move(policy)),
      incarnation_(incarnation),
      created_unix_ms_(unix_time_ms()) {}

std::optional<Refused> HostedJob::refusal(const Hello& hello, Duration old_after) {
  const auto differ = differences(policy_, hello.policy);
  if (!differ.empty()) return Refused{RefusalCode::incompatible_policy, differ};
  const auto found = sessions_.find(hello.node);
  if (found == sessions_.end()) return std::nullopt;
  const auto old = found->second;
  const bool same_agent = old->incarnation() == hello.incarnation;
  if (!same_agent && old->silent_for() < old_after)
    return Refused{RefusalCode::duplicate_node,
                   fmt::format("a node '{}' is here already, connected from {}; give this one another name",
                               hello.node, old->peer())};
  sessions_.erase(found);
  old->abort();
  if (!same_agent)
    step(ConnectionLost{hello.node, LossKind::silent, "another agent of the same node took its place"});
  return std::nullopt;
}

void HostedJob::attach(const std::shared_ptr<Session>& session) {
  session->belongs_to(shared_from_this());
  sessions_[session->node()] = session;
  known_.insert_or_assign(session->node(), session->incarnation());
  if (log_->should_log(spdlog::level::debug))
    log_->debug("job {}: node {} connected from {}", job_.id(), session->node(), session->peer());
}

bool HostedJob::knows(const NodeId& node, const std::string& incarnation) const {
  const auto found = known_.find(node);
  return found != known_.end() && found->second == incarnation;
}

const Session* HostedJob::session_of(const NodeId& node) const {
  const auto found = sessions_.find(node);
  return found == sessions_.end() ? nullptr : found->second.get();
}

void HostedJob::take(Session& session, const AgentMessage& message) {
  const auto* offer = offer_in(message);
  if (offer != nullptr && offer->node != session.node())
    return session.refuse({RefusalCode::malformed,
                           fmt::format("node '{}' cannot speak for node '{}'", session.node(), offer->node)});
  if (outcome_) return session.send(encode(DaemonMessage(JobEnded{*outcome_})));
  if (offer != nullptr)
    note(fmt::format("node {} ({}) {}", offer->node, offer->address,
                     std::holds_alternative<Join>(message) ? "joins" : "is back"));
  if (const auto* leave = std::get_if<Leave>(&message))
    note(fmt::format("node {} leaves: {}", session.node(), leave->reason));
  if (const auto* failed = std::get_if<WorkerFailed>(&message))
    note(fmt::format("rank {} on node {} {}", failed->failure.rank, session.node(),
                     failed->failure.cause.sentence()));
  step(FromAgent{session.node(), message});
}

void HostedJob::detach(Session& session, const Connection::Ending& ending) {
  const auto found = sessions_.find(session.node());
  if (found == sessions_.end() || found->second.get() != &session) return;
  const auto node = session.node();
  sessions_.erase(found);
  if (over()) return;
  note(fmt::format("connection of node {} from {} ended: {}", node, session.peer(), ending.why));
  step(ConnectionLost{node, loss_kind(ending.kind), ending.why});
}

std::optional<Answer> HostedJob::operate(const Event& event) {
  if (over()) return std::nullopt;
  return step(event);
}

std::optional<Answer> HostedJob::step(const Event& event) {
  std::optional<Answer> answer;
  for (auto& effect : job_.step(event, now())) {
    if (const auto* to_agent = std::get_if<ToAgent>(&effect)) deliver(to_agent->node, to_agent->message);
    if (auto* given = std::get_if<Answer>(&effect)) answer = std::move(*given);
    if (auto* end = std::get_if<JobOver>(&effect)) {
      outcome_ = std::move(end->outcome);
      over_since_ = now();
      note(fmt::format("job over: {}", outcome_->reason));
    }
  }
  arm();
  return answer;
}

void HostedJob::deliver(const NodeId& node, const DaemonMessage& message) {
  note_round(message);
  const auto found = sessions_.find(node);
  if (found == sessions_.end()) return;  // it asks again when it is back
  if (const auto* refused = std::get_if<Refused>(&message)) {
    const auto session = found->second;
    sessions_.erase(found);
    return session->refuse(*refused);
  }
  found->second->send(encode(message));
}

// What is said to every node of a round is one event.
void HostedJob::note_round(const DaemonMessage& message) {
  std::string text;
  if (const auto* a = std::get_if<Assignment>(&message))
    text = fmt::format("round {}: {} nodes, {} workers, master {}; {}", a->round, a->group_world_size,
                       a->world_size, Endpoint{a->master_addr, a->master_port}.text(), a->reason);
  if (const auto* drain = std::get_if<Drain>(&message))
    text = fmt::format("round {} drains: {}", drain->round, drain->reason);
  if (const auto* stop = std::get_if<StopWorkers>(&message))
    text = fmt::format("round {} stops: {}", stop->round, stop->reason);
  if (text.empty() || text == last_round_note_) return;
  last_round_note_ = text;
  note(std::move(text));
}

void HostedJob::note(std::string text) {
  log_->info("job {}: {}", job_.id(), text);
  events_.push_back({unix_time_ms(), std::move(text)});
  if (events_.size() > kMaxEvents) events_.pop_front();
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
