// An agent reduced to its half of the conversation: it joins, works, saves, stops, comes back. No time passes
// in it: what takes time is asked of the world as a Chore, which comes back by done().
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rendezvous/protocol/messages.hpp"

namespace muster::sim {

enum class Chore { save, stop };

class AgentModel {
 public:
  explicit AgentModel(rendezvous::NodeOffer offer) : offer_(std::move(offer)) {}

  enum class Workers { none, running, failed, succeeded };

  /// What it says first on a new connection.
  std::vector<rendezvous::AgentMessage> greeting(Instant now) const;

  /// What it says to a message, and the chores that the message starts. An error is a broken promise of the
  /// daemon's.
  struct Reply {
    std::vector<rendezvous::AgentMessage> messages;
    std::optional<Chore> chore;
    std::optional<rendezvous::Inject> fault;
    std::string error;
  };
  Reply hear(const rendezvous::DaemonMessage& message, Instant now);

  /// The chore of round `round` is done.
  std::vector<rendezvous::AgentMessage> done(Chore chore, int round);

  std::vector<rendezvous::AgentMessage> worker_fails(int exit_code, std::int64_t lived_ms, Instant now);
  std::vector<rendezvous::AgentMessage> workers_make_a_step();
  std::vector<rendezvous::AgentMessage> workers_succeed();
  std::vector<rendezvous::AgentMessage> leave();

  const rendezvous::NodeOffer& offer() const { return offer_; }
  const std::optional<rendezvous::Assignment>& assignment() const { return assignment_; }
  Workers workers() const { return workers_; }
  bool alive_workers() const { return workers_ == Workers::running; }
  bool stopping() const { return stop_asked_; }
  bool leaving() const { return leaving_; }
  int last_round() const { return last_round_; }
  const std::optional<rendezvous::Outcome>& outcome() const { return outcome_; }
  const std::optional<rendezvous::Refused>& refused() const { return refused_; }
  bool finished() const { return outcome_ || refused_; }

 private:
  std::vector<rendezvous::AgentMessage> place_in_the_past(int round, Instant now) const;
  rendezvous::Join join() const { return {offer_, last_round_, restart_count_, why_ended_}; }

  rendezvous::NodeOffer offer_;
  std::optional<rendezvous::Assignment> assignment_;
  Workers workers_ = Workers::none;
  std::optional<rendezvous::WorkerFailed> failure_;
  std::optional<rendezvous::Assignment>
      past_;  ///< of the round whose workers have stopped, and what failed there
  std::optional<rendezvous::WorkerFailed> past_failure_;
  Instant failed_at_{};  ///< of either
  bool drain_asked_ = false;
  bool safe_ = false;
  bool stop_asked_ = false;
  bool leaving_ = false;
  int last_round_ = 0;
  int restart_count_ = 0;
  std::string why_ended_;  ///< the newest round, as it was told
  std::optional<rendezvous::Outcome> outcome_;
  std::optional<rendezvous::Refused> refused_;
};

}  // namespace muster::sim
