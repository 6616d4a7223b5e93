#include "agent/core/stop_ladder.hpp"

#include <algorithm>

namespace muster::agent {

void StopLadder::begin(Duration grace, Instant now) {
  if (begun() && deadline_ <= now + grace) return;
  begin_anew(grace, now);
}

void StopLadder::begin_anew(Duration grace, Instant now) {
  if (killed()) return;
  state_ = State::asked;
  grace_ = grace;
  deadline_ = now + grace;
}

Duration StopLadder::left(Instant now) const {
  return state_ == State::asked ? std::max(Duration::zero(), deadline_ - now) : Duration::zero();
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
