// What happened to a job, for people: its events and its rounds. Seen from what the core says and hears;
// bounded, the oldest are forgotten. Pure but for the time that it is told.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "rendezvous/core/event.hpp"

namespace muster::rendezvous {

struct JobEvent {
  std::int64_t unix_time_ms = 0;
  std::string text;
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
};

class JobHistory {
 public:
  static constexpr std::size_t kMaxEvents = 1000;
  static constexpr std::size_t kMaxRounds = 100;

  struct Time {
    Instant now{};
    std::int64_t unix_time_ms = 0;
  };

  /// The line, when the message was worth one. What is said to every node of a round is one event.
  std::optional<std::string> heard(const NodeId& node, const AgentMessage& message, Time time);
  std::optional<std::string> told(const DaemonMessage& message, Time time);
  std::string note(std::string text, Time time);
  void ended(Time time);

  const std::deque<JobEvent>& events() const { return events_; }
  const std::deque<RoundRecord>& rounds() const { return rounds_; }

 private:
  std::optional<std::string> formed(const Assignment& assignment, Time time);

  std::deque<JobEvent> events_;
  std::deque<RoundRecord> rounds_;
};

}  // namespace muster::rendezvous
