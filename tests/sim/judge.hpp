// What must hold at every step of every run, whatever the network, the nodes and the daemon do.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/core/job.hpp"

namespace muster::sim {

class Judge {
 public:
  /// `forgetful`: the daemon of this run loses its memory, so the job's budget and round numbers may start
  /// anew.
  explicit Judge(bool forgetful) : forgetful_(forgetful) {}

  /// Looks at one step's effects and at the job after it. Empty, or what is wrong.
  std::string look_at(const rendezvous::Job& job, const std::vector<rendezvous::Effect>& effects,
                      Instant now);

  /// A snapshot restored is the same job.
  static std::string look_at_snapshot(const rendezvous::Job& job, Instant now);

  /// The world remembers what would make an ending right.
  void note_success(const rendezvous::NodeId& node, int round) { succeeded_[round].push_back(node); }
  void note_leave() { left_ = true; }
  void note_step(int round) {
    stepped_.insert(round);
    starts_are_spared_ = true;
  }
  void note_operator_stop() { stop_asked_ = true; }

  int rounds() const { return static_cast<int>(rounds_.size()); }

 private:
  using Assignments = std::map<rendezvous::NodeId, rendezvous::Assignment>;

  std::string look_at_round(const rendezvous::Job& job, const Assignments& sent);
  std::string look_at_ranks(const rendezvous::Job& job, const Assignments& sent) const;
  std::string look_at_growth(const rendezvous::Job& job, int round, Instant now);
  std::string look_at_stop(const rendezvous::StopWorkers& stop);
  static std::string look_at_fault(const rendezvous::Job& job, const rendezvous::NodeId& node);
  std::string look_at_members(const rendezvous::Job& job) const;
  std::string look_at_outcome(const rendezvous::Job& job, const rendezvous::Outcome& outcome) const;

  bool forgetful_;
  bool left_ = false;
  bool stop_asked_ = false;
  int restarts_ = 0;          ///< as the newest assignments say
  int charged_ = 0;           ///< as the newest reason to stop says
  int charged_in_round_ = 0;  ///< the round that was stopped with it
  std::map<int, Assignments> rounds_;
  std::map<int, Instant> began_;    ///< rounds, on the daemon's clock
  std::set<int> stepped_;           ///< rounds whose workers said that they made a step
  int grown_from_ = 0;              ///< the newest round that newcomers ended
  bool starts_are_spared_ = false;  ///< newcomers have to wait for the first step
  std::map<int, std::vector<rendezvous::NodeId>> succeeded_;
};

}  // namespace muster::sim
