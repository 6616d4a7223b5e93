// When a round can be formed: a pure question of who is here, since when, and the policy. Whoever asks at a
// later time gets 'form' or 'give up' at the latest at the join deadline; there is no third way out.
#pragma once

#include <optional>

#include "rendezvous/core/policy.hpp"
#include "rendezvous/core/settle.hpp"

namespace muster::rendezvous {

/// How things stand while nodes gather.
struct Gathering {
  Instant since{};
  std::optional<Instant> enough_since;  ///< min_nodes are here without a break since then
  bool reforming = false;               ///< the job had a round: who belongs to it is known
  bool roster_closed = false;           ///< an operator: no more nodes are coming
  Settle settle;                        ///< membership changes since the last round
  bool operator==(const Gathering&) const = default;
};

struct Roster {
  int here = 0;       ///< could sit in a round now
  int coming = 0;     ///< belong to the job, will be here soon or be lost
  int rejoining = 0;  ///< of them: of the last round, and connected
};

enum class GatherVerdict { wait, form, give_up };

/// Keeps `enough_since`; to be called whenever the roster may have changed, before decide().
void note_roster(Gathering& gathering, const Roster& roster, const JobPolicy& policy, Instant now);

GatherVerdict decide(const Gathering& gathering, const Roster& roster, const JobPolicy& policy,
                     Duration settle_window, Instant now);

/// When to ask again if nothing else happens.
Instant ask_again_at(const Gathering& gathering, const Roster& roster, const JobPolicy& policy,
                     Duration settle_window);

/// When the last call ends, if it is running.
std::optional<Instant> last_call_end(const Gathering& gathering, const JobPolicy& policy);

}  // namespace muster::rendezvous
