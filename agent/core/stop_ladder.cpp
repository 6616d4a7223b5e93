#include "agent/core/stop_ladder.hpp"

namespace muster::agent {

void StopLadder::begin(Duration grace, Instant now) {
  if (killed()) return;
  if (begun() && deadline_ <= now + grace) return;
  state_ = State::asked;
  grace_ = grace;
  deadline_ = now + grace;
}

void StopLadder::reset() { state_ = State::idle; }

StopLadder::Step StopLadder::tick(Instant now) {
  if (!wake_at() || now < deadline_) return Step::none;
  if (state_ == State::asked) {
    state_ = State::killed;
    deadline_ = now + after_kill_limit_;
    return Step::kill;
  }
  state_ = State::gave_up;
  return Step::give_up;
}

std::optional<Instant> StopLadder::wake_at() const {
  if (state_ == State::asked || state_ == State::killed) return deadline_;
  return std::nullopt;
}

}  // namespace muster::agent
