#include "agent/core/restart_phases.hpp"

#include <algorithm>
#include <utility>

namespace muster::agent {

void PhaseClock::enter(RestartPhase phase, Instant now) {
  if (running_ && *running_ >= phase) return;
  close(now);
  running_ = phase;
  since_ = now;
}

RestartPhases PhaseClock::finish(Instant now) {
  close(now);
  running_.reset();
  return std::exchange(spent_, {});
}

void PhaseClock::close(Instant now) {
  if (running_) spent_[static_cast<std::size_t>(*running_)] = now - since_;
}

std::string phases_text(const RestartPhases& phases) {
  std::string text;
  for (std::size_t index = 0; index < phases.size(); ++index) {
    if (!phases[index]) continue;
    const Duration spent = std::max(*phases[index], Duration(1));  // "under 1 ms", not "0 s"
    text += (text.empty() ? "" : ", ") + std::string(kRestartPhaseNames[index]) + " " + human(spent);
  }
  return text;
}

}  // namespace muster::agent
