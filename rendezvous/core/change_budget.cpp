#include "rendezvous/core/change_budget.hpp"

#include <algorithm>

namespace muster::rendezvous {
namespace {

/// That many more than the undamped ones bring every window to its cap.
constexpr int kChangesThatDamp = 64;

}  // namespace

void ChangeBudget::record(Instant now) {
  changes_.push_back(now);
  const int count = policy_.membership_changes.count;
  const int kept = count == unlimited ? policy_.undamped_changes + kChangesThatDamp : std::max(count, 1);
  if (changes_.size() > static_cast<std::size_t>(kept)) changes_.pop_front();
}

int ChangeBudget::used(Instant now) const {
  const Instant since = now - policy_.membership_changes.per;
  return static_cast<int>(
      std::count_if(changes_.begin(), changes_.end(), [&](Instant at) { return at > since; }));
}

Instant ChangeBudget::growth_allowed_at(Instant now) const {
  const int count = policy_.membership_changes.count;
  if (count == 0) return Instant::max();
  if (count == unlimited || used(now) < count) return now;
  return changes_.front() + policy_.membership_changes.per;
}

Duration ChangeBudget::settle_window(Instant now) const {
  Duration window = policy_.settle_window;
  for (int i = policy_.undamped_changes; i < used(now) && window < policy_.damped_settle_cap; ++i)
    window *= 2;
  return std::min(window, policy_.damped_settle_cap);
}

}  // namespace muster::rendezvous
