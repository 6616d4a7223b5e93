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
  struct State {
    int count = 0;
    std::vector<std::string> lines;
    std::deque<Instant> charged_at;   ///< what the window still sees, oldest first
    std::optional<int> startup_code;  ///< the round before ended by this code within the start-up window
    bool operator==(const State&) const = default;
  };

  explicit RestartLedger(const JobPolicy& policy) : policy_(policy) {}
  RestartLedger(const JobPolicy& policy, State state) : policy_(policy), state_(std::move(state)) {}

  /// The first failure of a round. Charges the budget if it allows a restart.
  Verdict judge(const WorkerFailure& failure, Instant now);

  /// A node is missing and the job cannot go on without it; `how`: "lost", "left".
  Verdict judge_missing_node(const NodeId& node, const char* how, Instant now);

  /// A round outlived the start-up window: whatever fails next is not a failure to start.
  void round_worked() { state_.startup_code.reset(); }

  bool budget_left(Instant now) const;

  /// Restarts after failures so far, and one line for each of the last max_restart_lines of them.
  int restarts() const { return state_.count; }
  const std::vector<std::string>& lines() const { return state_.lines; }

  const State& state() const { return state_; }

  /// A daemon that came back without its journal learns the count from the agents.
  void adopt(int restarts);

 private:
  Verdict charge(std::string line, Instant now);
  std::optional<int> startup_code(const WorkerFailure& failure) const;

  JobPolicy policy_;
  State state_;
};

}  // namespace muster::rendezvous
