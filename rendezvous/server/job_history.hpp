// What happened to a job, for people: its events and its rounds. Seen from what the core says and hears;
// bounded, the oldest are forgotten. The newest outlive the daemon in its journal. Pure but for the time that it is
// told.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/core/event.hpp"
#include "rendezvous/core/job.hpp"

namespace muster::rendezvous {

struct JobEvent {
  std::int64_t unix_time_ms = 0;
  std::string text;
  bool operator==(const JobEvent&) const = default;
};

struct RoundRecord {
  int number = 0;
  int nodes = 0;
  int workers = 0;
  std::string reason;             ///< why it was formed
  std::string end_reason;         ///< why it ended; empty while it runs
  std::int64_t unix_time_ms = 0;  ///< when it was formed
  Duration forming_took{};
  Instant formed_at{};
  std::optional<Instant> drain_at;  ///< announced to end
  std::optional<Instant> stop_at;   ///< workers told to stop
  std::optional<Instant> ended_at;  ///< all stopped
  bool operator==(const RoundRecord&) const = default;
};

class JobHistory {
 public:
  static constexpr std::size_t kMaxEvents = 1000;
  static constexpr std::size_t kMaxRounds = 100;
  static constexpr std::size_t kKept = 64;  ///< of each, in the journal

  struct Time {
    Instant now{};
    std::int64_t unix_time_ms = 0;
  };

  struct State {
    std::deque<JobEvent> events;  ///< oldest first, as the rounds
    std::deque<RoundRecord> rounds;
    State shifted_by(Duration by) &&;  ///< to another clock
    bool operator==(const State&) const = default;
  };
  JobHistory() = default;
  explicit JobHistory(State state) : events_(std::move(state.events)), rounds_(std::move(state.rounds)) {}
  /// The newest.
  State kept() const;

  /// The line, when the message was worth one. `known`: the node as the job knew it before; null: not at all. What is
  /// said to every node of a round is one event.
  std::optional<std::string> heard(const NodeId& node, const AgentMessage& message, const Member* known,
                                   Time time);
  std::optional<std::string> told(const DaemonMessage& message, Time time);
  std::string note(std::string text, Time time);
  std::string ended(const Outcome& outcome, Time time);
  /// To an operator: what was changed. Nothing if nothing was.
  std::optional<std::string> answered(const Answer& answer, Time time);

  /// An event of the journal that is to be stepped, and what came of it.
  void before(const Event& event, const Job& job, Time time);
  void after(const std::vector<Effect>& effects, Time time);

  const std::deque<JobEvent>& events() const { return events_; }
  const std::deque<RoundRecord>& rounds() const { return rounds_; }

 private:
  std::optional<std::string> joined(const NodeOffer& offer, const Member* known, Time time);
  std::optional<std::string> formed(const Assignment& assignment, Time time);

  std::deque<JobEvent> events_;
  std::deque<RoundRecord> rounds_;
};

}  // namespace muster::rendezvous
