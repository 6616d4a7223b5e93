#include <fmt/format.h>

#include <csignal>

#include "tests/sim/world.hpp"

namespace muster::sim {

using namespace rendezvous;
using namespace std::chrono_literals;

namespace {

constexpr Duration work_time = 20s;
constexpr int longest_start_ms = 12'000;
constexpr Duration reconnect_budget = 60s;

}  // namespace

void World::launch(int index) {
  Node& node = nodes_[static_cast<std::size_t>(index)];
  if (node.agent || over_) return;
  NodeOffer offer;
  offer.node = node.name;
  offer.host = node.name;
  offer.address = fmt::format("10.0.0.{}", index + 1);
  offer.store_port = static_cast<std::uint16_t>(1'000 * (index + 1));
  offer.local_workers = 1 + index % 3;
  offer.hosts_endpoint = index == 0;
  offer.incarnation = std::to_string(++node.incarnation);
  node.agent = std::make_unique<AgentModel>(offer);
  node.connection = 0;
  node.offline_since = now_;
  trace([&] { return node.name + " is launched"; });
  connect(index);
}

void World::relaunch_later(int node, Duration delay) {
  after(delay, [this, node] { launch(node); });
}

/// The process ends, whatever the reason; its workers end with it.
void World::kill(int index, const char* why) {
  Node& node = nodes_[static_cast<std::size_t>(index)];
  if (!node.agent) return;
  trace([&] { return node.name + " " + why; });
  const bool worked = node.agent->alive_workers();
  const int round = worked ? node.agent->assignment()->round : 0;
  node.agent.reset();
  if (node.connection) cut(node.connection, LossKind::closed);
  node.connection = 0;
  // The other workers of the round notice in their collectives, sometimes before anybody else does.
  if (worked)
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (random_.chance(50))
        after(random_.ms(10, 4'000), [this, i, incarnation = nodes_[i].incarnation, round] {
          if (same(static_cast<int>(i), incarnation, round)) fail_worker(static_cast<int>(i));
        });
  if (random_.chance(80)) relaunch_later(index, random_.ms(100, 20'000));
}

void World::terminate(int index) {
  Node& node = nodes_[static_cast<std::size_t>(index)];
  if (!node.agent || node.agent->leaving()) return;
  trace([&] { return node.name + " gets SIGTERM"; });
  send_up(index, node.agent->leave());
  after(random_.ms(0, 8'000), [this, index, incarnation = node.incarnation] {
    if (nodes_[static_cast<std::size_t>(index)].incarnation == incarnation) kill(index, "has left");
  });
}

void World::connect(int index) {
  Node& node = nodes_[static_cast<std::size_t>(index)];
  if (!node.agent || node.connection) return;
  if (now_ - node.offline_since > reconnect_budget) return kill(index, "gives up reconnecting");
  if (daemon_up_ && !random_.chance(20)) {
    node.connection = ++last_connection_;
    connections_[node.connection] = {index, false, false, now_, now_};
    return send_up(index, node.agent->greeting(now_));
  }
  after(random_.ms(100, 3'000), [this, index, incarnation = node.incarnation] {
    if (nodes_[static_cast<std::size_t>(index)].incarnation == incarnation) connect(index);
  });
}

/// What is under way is lost, and both ends notice at different times.
void World::cut(int id, LossKind kind) {
  if (id == 0 || connections_.at(id).cut) return;
  connections_.at(id).cut = true;
  const int index = connections_.at(id).node;
  const bool silent = kind == LossKind::silent;
  after(silent ? Duration(15s) : random_.ms(0, 2'000), [this, id, kind] { notice_loss(id, kind); });
  after(silent ? random_.ms(5'000, 20'000) : random_.ms(0, 2'000), [this, id, index] {
    Node& node = nodes_[static_cast<std::size_t>(index)];
    if (node.connection != id) return;
    node.connection = 0;
    node.offline_since = now_;
    connect(index);
  });
}

void World::send_up(int index, const std::vector<AgentMessage>& messages) {
  const int id = nodes_[static_cast<std::size_t>(index)].connection;
  if (id == 0) return;
  Connection& connection = connections_.at(id);
  for (const AgentMessage& message : messages) {
    connection.last_up = std::max(connection.last_up, now_ + random_.ms(0, 300));
    after(connection.last_up - now_, [this, id, message] { hear_from(id, message); });
  }
}

void World::send_down(int id, const DaemonMessage& message) {
  Connection& connection = connections_.at(id);
  connection.last_down = std::max(connection.last_down, now_ + random_.ms(0, 300));
  after(connection.last_down - now_, [this, id, message] { deliver_down(id, message); });
}

void World::deliver_down(int id, const DaemonMessage& message) {
  const Connection& connection = connections_.at(id);
  Node& node = nodes_[static_cast<std::size_t>(connection.node)];
  if (connection.cut || node.connection != id || !node.agent) return;
  const int round_before = node.agent->assignment() ? node.agent->assignment()->round : 0;
  const AgentModel::Reply reply = node.agent->hear(message, now_);
  if (!reply.error.empty()) return wrong(reply.error);
  if (node.agent->finished()) return kill(connection.node, "ends");
  if (node.agent->assignment() && node.agent->assignment()->round != round_before) work(connection.node);
  if (reply.chore) chore(connection.node, *reply.chore);
  send_up(connection.node, reply.messages);
  if (reply.fault) suffer(connection.node, *reply.fault);
}

/// What an operator rehearses is as real as the other faults.
void World::suffer(int index, const Inject& fault) {
  if (fault.rank) return fail_worker(index);
  fault.signal_number == SIGTERM ? terminate(index) : kill(index, "is killed by an operator");
}

bool World::same(int index, int incarnation, int round) const {
  const Node& node = nodes_[static_cast<std::size_t>(index)];
  return node.agent && node.incarnation == incarnation && node.agent->assignment() &&
         node.agent->assignment()->round == round;
}

void World::work(int index) {
  Node& node = nodes_[static_cast<std::size_t>(index)];
  node.round_since = now_;
  node.assigned_on = node.connection;
  if (steps_are_told_)
    after(random_.ms(0, longest_start_ms),
          [this, index, incarnation = node.incarnation, round = node.agent->assignment()->round] {
            if (!same(index, incarnation, round)) return;
            AgentModel& agent = *nodes_[static_cast<std::size_t>(index)].agent;
            if (agent.alive_workers() && !agent.stopping()) send_up(index, agent.workers_make_a_step());
          });
  const bool fails = faults_last() && random_.chance(8);
  const Duration time = fails ? random_.ms(100, 15'000) : work_time + random_.ms(0, 1'000);
  after(time, [this, index, fails, incarnation = node.incarnation, round = node.agent->assignment()->round] {
    if (!same(index, incarnation, round)) return;
    AgentModel& agent = *nodes_[static_cast<std::size_t>(index)].agent;
    if (!agent.alive_workers() || agent.stopping()) return;
    if (fails) return fail_worker(index);
    trace([&] { return agent.offer().node + " has finished its work"; });
    send_up(index, agent.workers_succeed());
  });
}

void World::fail_worker(int index) {
  Node& node = nodes_[static_cast<std::size_t>(index)];
  if (!node.agent || !node.agent->alive_workers()) return;
  trace([&] { return node.name + "'s worker fails"; });
  send_up(index, node.agent->worker_fails(random_.between(1, 2), (now_ - node.round_since) / 1ms, now_));
}

void World::chore(int index, Chore what) {
  const Node& node = nodes_[static_cast<std::size_t>(index)];
  const int incarnation = node.incarnation;
  const int round = node.agent->assignment()->round;
  const bool never = faults_last() && random_.chance(3);
  if (never && what == Chore::save) return;
  after(never ? Duration(100s) : random_.ms(0, what == Chore::save ? 4'000 : 1'500),
        [this, index, what, incarnation, round] {
          if (!same(index, incarnation, round)) return;
          send_up(index, nodes_[static_cast<std::size_t>(index)].agent->done(what, round));
        });
}

}  // namespace muster::sim
