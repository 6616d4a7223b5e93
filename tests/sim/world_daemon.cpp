#include <fmt/format.h>

#include "tests/rendezvous/core/describe.hpp"
#include "tests/sim/world.hpp"

namespace muster::sim {

using namespace rendezvous;
using namespace std::chrono_literals;

void World::step(const Event& event) {
  if (!result_.wrong.empty()) return;
  steps_at_once_ = last_step_ == now_ ? steps_at_once_ + 1 : 0;
  last_step_ = now_;
  if (steps_at_once_ > 5'000) return wrong("the job spins: " + job_->reason(daemon_now()));
  ++result_.steps;
  const std::vector<Effect> effects = job_->step(event, daemon_now());
  if (auto broken = judge_.look_at(*job_, effects, daemon_now()); !broken.empty()) return wrong(broken);
  look_for_second_round();
  look_for_false_causes(effects);
  if (random_.chance(5)) {
    if (auto broken = Judge::look_at_snapshot(*job_, daemon_now()); !broken.empty()) return wrong(broken);
    job_ = std::make_unique<Job>(Job::restore(job_->snapshot(daemon_now()), daemon_now()));
  }
  for (const Effect& effect : effects) route(effect);
  arm();
}

/// Unless the network keeps them apart, nobody works in an old round any more once there is a new one.
/// Whoever was given up because it did not stop in time is known to be stopping; but a clock that jumps over
/// that deadline leaves no time to hear of it.
void World::look_for_second_round() {
  if (!job_->round() || now_ - last_jump_ < 20s) return;
  for (const Node& node : nodes_) {
    if (!node.agent || !node.agent->alive_workers() || node.agent->stopping()) continue;
    const bool unbroken =
        node.connection != 0 && node.connection == node.assigned_on && !connections_.at(node.connection).cut;
    if (unbroken && node.agent->assignment()->round < job_->round()->number())
      wrong(fmt::format("{} still works in round {} while round {} is live", node.name,
                        node.agent->assignment()->round, job_->round()->number()));
  }
}

/// Nobody is said to have been started anew who has been there all the time, and says so.
void World::look_for_false_causes(const std::vector<Effect>& effects) {
  for (const Effect& effect : effects) {
    const auto* to_agent = std::get_if<ToAgent>(&effect);
    const auto* assignment = to_agent ? std::get_if<Assignment>(&to_agent->message) : nullptr;
    if (!assignment) continue;
    for (const Node& node : nodes_) {
      const bool known = node.agent && node.incarnation == 1 && node.agent->last_round() > 0 &&
                         node.agent->last_round() < assignment->round;
      if (known &&
          assignment->reason.find(node.name + " was lost (its agent was started anew)") != std::string::npos)
        wrong(fmt::format("{} was never started anew, and round {} began with: {}", node.name,
                          assignment->round, assignment->reason));
    }
  }
}

void World::route(const Effect& effect) {
  if (const auto* job_over = std::get_if<JobOver>(&effect)) {
    over_ = true;
    trace([&] { return "OVER: " + job_over->outcome.reason; });
  }
  if (const auto* answer = std::get_if<Answer>(&effect)) trace([&] { return "operator: " + answer->text; });
  const auto* to_agent = std::get_if<ToAgent>(&effect);
  if (!to_agent) return;
  const auto session = sessions_.find(to_agent->node);
  trace([&] {
    return fmt::format("-> {}{} {}", to_agent->node, session == sessions_.end() ? " (away)" : "",
                       rendezvous::describe(to_agent->message));
  });
  if (session != sessions_.end()) send_down(session->second, to_agent->message);
}

void World::arm() {
  if (!daemon_up_) return;
  const auto wake_at = job_->wake_at();
  if (!wake_at || wake_at == armed_) return;
  armed_ = wake_at;
  after(std::max(*wake_at - daemon_now(), Duration::zero()), [this, at = *wake_at] {
    if (!daemon_up_ || armed_ != at) return;
    armed_.reset();
    step(Tick{});
  });
}

void World::hear_from(int connection, const AgentMessage& message) {
  Connection& from = connections_.at(connection);
  if (from.cut || !daemon_up_) return;
  const Node& node = nodes_[static_cast<std::size_t>(from.node)];
  if (!from.admitted && !admit(connection, message)) return;
  const auto session = sessions_.find(node.name);
  if (session == sessions_.end() || session->second != connection) return;
  trace([&] { return fmt::format("   {} says #{}", node.name, message.index()); });
  if (const auto* succeeded = std::get_if<WorkersSucceeded>(&message))
    judge_.note_success(node.name, succeeded->round);
  if (std::holds_alternative<Leave>(message)) judge_.note_leave();
  if (const auto* progress = std::get_if<Progress>(&message);
      progress && job_->round() && job_->round()->number() == progress->round)
    judge_.note_step(progress->round);
  step(FromAgent{node.name, message});
}

bool World::admit(int connection, const AgentMessage& message) {
  Connection& from = connections_.at(connection);
  const std::string& name = nodes_[static_cast<std::size_t>(from.node)].name;
  const auto* join = std::get_if<Join>(&message);
  const auto* resume = std::get_if<Resume>(&message);
  if (!join && !resume) return false;
  from.admitted = true;
  const auto old = sessions_.find(name);
  if (old != sessions_.end()) {
    // In this world an old connection of the same node is always dead: the daemon asks it, and finds out; or
    // sees that it is the same agent and puts the new one in its place.
    if (random_.chance(50)) notice_loss(old->second, LossKind::closed);
  }
  const NodeOffer& offer = join ? join->offer : resume->offer;
  const Member* member = job_->membership().find(name);
  if (member && member->connected() && member->offer.incarnation != offer.incarnation)
    step(ConnectionLost{name, LossKind::closed, "connection closed"});
  sessions_[name] = connection;
  if (const auto refused = job_->refusal(offer, daemon_now())) {
    trace([&] { return name + " is turned away: " + refused->reason; });
    send_down(connection, *refused);
    return false;
  }
  return true;
}

void World::notice_loss(int connection, LossKind kind) {
  const std::string& name = nodes_[static_cast<std::size_t>(connections_.at(connection).node)].name;
  const auto session = sessions_.find(name);
  if (!daemon_up_ || session == sessions_.end() || session->second != connection) return;
  sessions_.erase(session);
  trace([&] { return name + " is off"; });
  step(ConnectionLost{name, kind, kind == LossKind::silent ? "nothing heard for 15 s" : "connection closed"});
}

void World::crash_daemon() {
  if (!daemon_up_) return;
  trace([&] { return "the daemon crashes"; });
  daemon_up_ = false;
  armed_.reset();
  sessions_.clear();
  if (!options_.forgetful_daemon) memory_ = job_->snapshot(daemon_now());
  for (auto& [id, connection] : connections_)
    if (!connection.cut) cut(id, LossKind::closed);
  after(random_.ms(0, 15'000), [this] { restart_daemon(); });
}

void World::restart_daemon() {
  trace([&] { return "the daemon is back"; });
  daemon_up_ = true;
  job_ = std::make_unique<Job>(memory_ ? Job::restore(*memory_, daemon_now()) : Job("job", policy_));
  if (!memory_) over_ = false;
  if (memory_) step(Restarted{});
}

bool World::member_knows(const std::string& node) const {
  const Member* member = job_->membership().find(node);
  return member && (member->connected() || sessions_.count(node) == 0);
}

}  // namespace muster::sim
