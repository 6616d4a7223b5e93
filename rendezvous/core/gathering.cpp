#include "rendezvous/core/gathering.hpp"

#include <algorithm>

namespace muster::rendezvous {
namespace {

/// The time from which on min_nodes suffice.
Instant early_end(const Gathering& gathering, const Roster& roster, const JobPolicy& policy,
                  Duration settle_window) {
  const Instant enough_since = *gathering.enough_since;
  if (gathering.roster_closed) return enough_since;
  // Members whose workers have just stopped, or whose connection may come back, are waited for however short
  // the last call is; it is for nodes that nobody has heard of.
  if (gathering.reforming && roster.coming > 0)
    return enough_since + std::max(policy.last_call, policy.stop_deadline);
  if (gathering.reforming) {
    const auto settled = gathering.settle.at(settle_window, policy.settle_limit);
    return std::max(enough_since, settled.value_or(enough_since));
  }
  return enough_since + policy.last_call;
}

Instant deadline(const Gathering& gathering, const JobPolicy& policy) {
  return gathering.since + policy.join_deadline;
}

}  // namespace

void note_roster(Gathering& gathering, const Roster& roster, const JobPolicy& policy, Instant now) {
  if (roster.here < policy.min_nodes)
    gathering.enough_since.reset();
  else if (!gathering.enough_since)
    gathering.enough_since = now;
}

GatherVerdict decide(const Gathering& gathering, const Roster& roster, const JobPolicy& policy,
                     Duration settle_window, Instant now) {
  // Spares may be enough; but whoever has just stopped its workers keeps its place, and asks for it in a moment.
  if (roster.here >= policy.max_nodes && roster.rejoining == 0) return GatherVerdict::form;
  const bool late = now >= deadline(gathering, policy);
  if (roster.here < policy.min_nodes) return late ? GatherVerdict::give_up : GatherVerdict::wait;
  return late || now >= early_end(gathering, roster, policy, settle_window) ? GatherVerdict::form
                                                                            : GatherVerdict::wait;
}

Instant ask_again_at(const Gathering& gathering, const Roster& roster, const JobPolicy& policy,
                     Duration settle_window) {
  const Instant late = deadline(gathering, policy);
  return gathering.enough_since ? std::min(late, early_end(gathering, roster, policy, settle_window)) : late;
}

std::optional<Instant> last_call_end(const Gathering& gathering, const JobPolicy& policy) {
  if (!gathering.enough_since) return std::nullopt;
  return std::min(*gathering.enough_since + policy.last_call, deadline(gathering, policy));
}

}  // namespace muster::rendezvous
