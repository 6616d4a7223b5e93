// Membership changes cost no restart, but each one costs work: growth is slowed down when they come often,
// and put off when the window's budget is used. Shrinking cannot be put off; it only counts.
#pragma once

#include <deque>

#include "rendezvous/core/policy.hpp"

namespace muster::rendezvous {

class ChangeBudget {
 public:
  explicit ChangeBudget(const JobPolicy& policy, std::deque<Instant> changes = {})
      : policy_(policy), changes_(std::move(changes)) {}

  void record(Instant now);

  int used(Instant now) const;

  /// The earliest time at which the budget allows the next growth; `now` or earlier: at once.
  Instant growth_allowed_at(Instant now) const;

  /// The settle window, longer the more changes there were of late.
  Duration settle_window(Instant now) const;

  const std::deque<Instant>& state() const { return changes_; }

 private:
  JobPolicy policy_;
  std::deque<Instant> changes_;  ///< oldest first; no more than the budget's count, or than damping looks at
};

}  // namespace muster::rendezvous
