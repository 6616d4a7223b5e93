// The steps by which running workers are ended: a signal, a grace, SIGKILL, a bounded wait, a name for what
// is still there.
#pragma once

#include <optional>

#include "base/time.hpp"

namespace muster::agent {

class StopLadder {
 public:
  enum class Step { none, kill, give_up };

  explicit StopLadder(Duration after_kill_limit) : after_kill_limit_(after_kill_limit) {}

  /// Begins, or brings the kill nearer when it has begun already; never moves it away.
  void begin(Duration grace, Instant now);
  /// Counts anew from now on, also where that moves the kill away.
  void begin_anew(Duration grace, Instant now);
  void reset();

  bool begun() const { return state_ != State::idle; }
  bool killed() const { return state_ >= State::killed; }
  bool gave_up() const { return state_ == State::gave_up; }
  Duration grace() const { return grace_; }
  /// Until the kill; 0 where there is none to come.
  Duration left(Instant now) const;

  /// The step that is due at `now`; each is given once.
  Step tick(Instant now);
  std::optional<Instant> wake_at() const;

 private:
  enum class State { idle, asked, killed, gave_up };

  Duration after_kill_limit_;
  State state_ = State::idle;
  Duration grace_{};
  Instant deadline_{};
};

}  // namespace muster::agent
