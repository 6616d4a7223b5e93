// A whole cluster in one thread from one seed: a job's rendezvous core, agents, connections that break and
// lose what is under way, processes that die, a daemon that crashes with or without its memory, a clock that
// jumps.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "tests/sim/agent_model.hpp"
#include "tests/sim/judge.hpp"
#include "tests/sim/random.hpp"

namespace muster::sim {

struct WorldOptions {
  std::uint64_t seed = 1;
  bool forgetful_daemon = false;  ///< a crash of the daemon loses all it knew
  bool trace = false;             ///< to stdout
  Duration fault_period = std::chrono::seconds(180);
};

struct WorldResult {
  std::string wrong;  ///< empty: everything held
  int steps = 0;
  int rounds = 0;
  std::string ending;
};

class World {
 public:
  explicit World(const WorldOptions& options);
  WorldResult run();

 private:
  struct Node {
    std::string name;
    int incarnation = 0;
    std::unique_ptr<AgentModel> agent;  ///< nothing while the process is dead
    int connection = 0;
    int assigned_on = 0;  ///< the connection that brought the present assignment
    Instant offline_since{};
    Instant round_since{};
  };
  struct Connection {
    int node = 0;
    bool cut = false;
    bool admitted = false;
    Instant last_up{};
    Instant last_down{};
  };
  struct Item {
    Instant at{};
    std::uint64_t order = 0;
    std::function<void()> act;
    bool operator<(const Item& other) const { return std::tie(other.at, other.order) < std::tie(at, order); }
  };

  void after(Duration delay, std::function<void()> act);
  bool faults_last() const { return now_ < start_ + options_.fault_period; }
  void wrong(const std::string& what);
  void trace(const std::function<std::string()>& line) const;

  // The daemon (world_daemon.cpp).
  Instant daemon_now() const { return now_ + skew_; }
  void step(const rendezvous::Event& event);
  void route(const rendezvous::Effect& effect);
  void arm();
  void hear_from(int connection, const rendezvous::AgentMessage& message);
  bool admit(int connection, const rendezvous::AgentMessage& message);
  void notice_loss(int connection, rendezvous::LossKind kind);
  void crash_daemon();
  void restart_daemon();
  void look_for_second_round();
  void look_for_false_causes(const std::vector<rendezvous::Effect>& effects);
  bool member_knows(const std::string& node) const;

  // Agents and their connections (world_agents.cpp).
  void launch(int node);
  void kill(int node, const char* why);
  void suffer(int node, const rendezvous::Inject& fault);
  void terminate(int node);
  void relaunch_later(int node, Duration delay);
  void connect(int node);
  void cut(int connection, rendezvous::LossKind kind);
  void send_up(int node, const std::vector<rendezvous::AgentMessage>& messages);
  void send_down(int connection, const rendezvous::DaemonMessage& message);
  void deliver_down(int connection, const rendezvous::DaemonMessage& message);
  void work(int node);
  void chore(int node, Chore chore);
  void fail_worker(int node);
  bool same(int node, int incarnation, int round) const;

  void one_fault();
  void operator_acts();
  void look_for_strays();

  WorldOptions options_;
  Random random_;
  Instant start_ = Instant(std::chrono::hours(1));
  Instant now_ = start_;
  Duration skew_{};
  Instant last_jump_{};
  std::priority_queue<Item> items_;
  std::uint64_t order_ = 0;
  std::vector<Node> nodes_;
  std::map<int, Connection> connections_;
  int last_connection_ = 0;
  std::map<std::string, int> sessions_;  ///< the daemon's view
  std::unique_ptr<rendezvous::Job> job_;
  rendezvous::JobPolicy policy_;
  bool daemon_up_ = true;
  bool over_ = false;
  bool steps_are_told_ = false;  ///< workers say when they make their first step
  std::optional<rendezvous::JobSnapshot> memory_;
  std::optional<Instant> armed_;
  Judge judge_;
  WorldResult result_;
  int steps_at_once_ = 0;
  Instant last_step_{};
};

}  // namespace muster::sim
