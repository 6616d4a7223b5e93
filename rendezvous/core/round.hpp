// One world: who sits in it, at which ranks, and how far each node is. Knows nothing of what comes after it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/core/rank_plan.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace muster::rendezvous {

struct Seat {
  NodeId node;  ///< empty: of an adopted round, and its node has not spoken yet
  int first_rank = 0;
  int local_workers = 0;
  int first_role_rank = 0;
  int role_world_size = 0;
  bool safe = false;       ///< its workers have saved, or have nothing to save any more
  bool failed = false;     ///< one of its workers has
  bool succeeded = false;  ///< all of its workers have
  bool stopped = false;    ///< none of its workers is alive
  bool gone = false;       ///< the node is no member any more
  std::int64_t step = -1;
  NodeId expected = {};  ///< while `node` is empty: whose it is, if its neighbour has said so
  bool operator==(const Seat&) const = default;
};

class Round {
 public:
  struct State {
    int number = 0;
    bool adopted = false;  ///< learnt from agents: addresses and reason are not known
    int restart_count = 0;
    int max_restarts = 0;
    int world_size = 0;
    std::string master_addr;
    std::uint16_t master_port = 0;
    std::string reason;
    Duration forming_took{};
    std::vector<Seat> seats;  ///< by group rank
    bool operator==(const State&) const = default;
  };

  /// Seats and ranks from the plan; group rank 0 serves the worker store.
  Round(State header, const std::vector<PlannedSeat>& plan);
  explicit Round(State state);

  /// A round that others formed: `nodes` seats of which nobody is known yet.
  static Round adopted(int number, int nodes, int restart_count, int max_restarts);

  int number() const { return state_.number; }
  int size() const { return static_cast<int>(state_.seats.size()); }
  int world_size() const { return state_.world_size; }
  const State& state() const { return state_; }

  /// The seat of a node, also of one that is gone.
  const Seat* seat(const NodeId& node) const;
  int group_rank(const NodeId& node) const { return index_.at(node); }
  Assignment assignment(const NodeId& node) const;

  /// For an adopted round: the node at `group_rank` speaks up. False if the place is somebody else's.
  bool claim(int group_rank, const Resume& resume);
  int unclaimed() const { return unclaimed_; }
  void give_up_unclaimed();
  /// Of those who have not spoken yet the first whose names are known.
  std::vector<NodeId> expected(int at_most) const;
  bool expects(const NodeId& node) const { return expected_.contains(node); }
  /// An expected node does not come back to its place.
  void give_up(const NodeId& expected);

  void mark_safe(const NodeId& node, std::int64_t step);
  void mark_failed(const NodeId& node);
  void mark_succeeded(const NodeId& node);
  void mark_stopped(const NodeId& node);
  void mark_gone(const NodeId& node);
  void mark_back(const NodeId& node);
  void note_step(const NodeId& node, std::int64_t step);

  bool all_succeeded() const { return succeeded_ == size(); }
  bool any_succeeded() const { return succeeded_ > 0; }
  /// A worker has said that it made a step.
  bool any_step() const { return stepped_ > 0; }
  /// Every node that is still here is safe (or stopped); the same for stopped.
  bool all_safe() const { return to_be_safe_ == 0; }
  bool all_stopped() const { return to_be_stopped_ == 0; }

  static bool waits_for_safe(const Seat& seat);
  static bool waits_for_stop(const Seat& seat);

  /// The first nodes that are still not safe / not stopped, for a sentence.
  std::vector<NodeId> unsafe(int at_most) const;
  std::vector<NodeId> unstopped(int at_most) const;
  int unsafe_count() const { return to_be_safe_; }
  int unstopped_count() const { return to_be_stopped_; }

 private:
  template <class Change>
  void change(const NodeId& node, Change&& apply);
  void count(const Seat& seat, int sign);
  void index_all();
  void expect(const NodeId& node, int group_rank);

  State state_;
  std::map<NodeId, int> index_;
  std::map<NodeId, int> expected_;
  int succeeded_ = 0;
  int stepped_ = 0;
  int to_be_safe_ = 0;
  int to_be_stopped_ = 0;
  int unclaimed_ = 0;
};

}  // namespace muster::rendezvous
