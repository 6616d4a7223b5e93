// One job's rendezvous: who is in, who has which rank, when a round starts, why it ends. Pure: no socket, no
// clock, no thread. Give it what happened and the time; it says what to send, and when it wants to be woken.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/core/event.hpp"
#include "rendezvous/core/policy.hpp"
#include "rendezvous/core/restart_ledger.hpp"

namespace muster::rendezvous {

enum class Phase : std::uint8_t { gathering, running, stopping, over };

class Job {
 public:
  /// `policy` must have passed validate().
  Job(std::string id, JobPolicy policy);

  /// What follows from one event. Messages to one node are to be sent in the order given.
  std::vector<Effect> step(const Event& event, Instant now);

  /// When the next Tick is wanted; it may change with every step.
  std::optional<Instant> wake_at() const;

  /// Why things are as they are, in one sentence.
  std::string reason(Instant now) const;

  Phase phase() const { return phase_; }
  bool over() const { return phase_ == Phase::over; }
  const std::string& id() const { return id_; }

 private:
  struct Member {
    NodeOffer offer;
    bool ready = false;
    bool done = false;  ///< stopped or succeeded, as the phase asks
    int group_rank = 0;
  };

  void take(const FromAgent& event);
  void on(const NodeId& node, const Join& join);
  void on(const NodeId& node, const WorkerFailed& failed);
  void on(const NodeId& node, const WorkersStopped& stopped);
  void on(const NodeId& node, const WorkersSucceeded& succeeded);
  void on(const NodeId& node, const Leave& leave);
  void form_round();
  void end(Outcome outcome);
  bool all_done() const;
  void tell(const NodeId& node, DaemonMessage message);

  std::string id_;
  JobPolicy policy_;
  RestartLedger ledger_;
  std::map<NodeId, Member> members_;
  Phase phase_ = Phase::gathering;
  int round_ = 0;
  std::string cause_;
  std::optional<Instant> gathering_since_;
  Instant now_{};
  Outcome outcome_;
  std::vector<Effect> effects_;
};

}  // namespace muster::rendezvous
