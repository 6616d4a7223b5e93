// What an agent has to say when its connection comes back: what it is, what it has, and what of its last
// words may have been lost. Pure; the link notes every message that passes, and when.
#pragma once

#include <optional>
#include <vector>

#include "rendezvous/protocol/messages.hpp"

namespace muster::rendezvous {

class LinkMemory {
 public:
  void note_sent(const AgentMessage& message, Instant now);
  void note_received(const DaemonMessage& message);

  /// First messages of a new connection, in order. A node that waits for a round says Join again; one that
  /// has a round says Resume and repeats what it said of this round: the core takes repetitions without harm.
  /// Empty as long as nothing was said.
  std::vector<AgentMessage> restatement(Instant now) const;

  /// What the link itself answers to the question where this node sat (StopWorkers without a reason). Empty: it is no
  /// such question, and the message is the agent's.
  std::vector<AgentMessage> answer_to(const DaemonMessage& message, Instant now) const;

  /// It has (or had) a round: a broken connection is a matter of Resume, not of the join deadline.
  bool has_round() const { return assignment_.has_value(); }
  /// Leave was said.
  bool leaves() const { return leave_.has_value(); }
  /// JobEnded or Refused was received: there is nothing left to connect for.
  bool over() const { return over_; }

 private:
  std::vector<AgentMessage> place(Instant now) const;

  struct Statements {
    bool stop_heard = false;
    std::optional<WorkerFailed> failed;  ///< the first of the round, unless it came of the round's end
    Instant failed_at{};                 ///< when that worker ended
    std::optional<WorkersSafe> safe;
    std::optional<WorkersStopped> stopped;
    std::optional<WorkersSucceeded> succeeded;
  };

  std::optional<Join> join_;  ///< the last one
  std::optional<Assignment> assignment_;
  Statements said_;  ///< of the assignment's round
  std::optional<Leave> leave_;
  bool joining_ = false;
  bool over_ = false;
};

}  // namespace muster::rendezvous
