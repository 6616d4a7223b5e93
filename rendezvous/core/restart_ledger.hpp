// The one book of restarts for the whole job: every worker on every node sees the same number.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/core/policy.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace muster::rendezvous {

/// What a failure leads to, and why. `reason` completes the sentence that names the failure: empty, or
/// "it exited so within 0.1 s of its start before: not restarted again".
struct Verdict {
  bool restart = false;
  std::string reason;
};

constexpr int max_restart_lines = 100;

class RestartLedger {
 public:
  explicit RestartLedger(const JobPolicy& policy) : policy_(policy) {}

  /// The first failure of a round. Charges the budget if it allows a restart.
  Verdict judge(const WorkerFailure& failure, Instant now);

  /// A node was lost and the job cannot go on without it.
  Verdict judge_lost_node(const NodeId& node, Instant now);

  bool budget_left(Instant now) const;

  /// Restarts after failures so far, and one line for each of the last max_restart_lines of them.
  int restarts() const { return count_; }
  const std::vector<std::string>& lines() const { return lines_; }

  struct State {
    int count = 0;
    std::vector<std::string> lines;
    std::vector<Duration> ages;  ///< of the charges that the window still sees, oldest first
    std::optional<int> startup_code;
    bool operator==(const State&) const = default;
  };
  State state(Instant now) const;
  void restore(const State& state, Instant now);

  /// A daemon that came back without its journal learns the count from the agents.
  void adopt(int restarts);

 private:
  Verdict charge(std::string line, Instant now);
  bool startup_failure(const WorkerFailure& failure) const;

  JobPolicy policy_;
  int count_ = 0;
  std::vector<std::string> lines_;
  std::deque<Instant> charged_at_;
  std::optional<int> startup_code_;  ///< the round before ended by this code within the start-up window
};

}  // namespace muster::rendezvous
