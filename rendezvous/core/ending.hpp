// Why and how a round ends: what began it, what came after, and which of several failures was the first where that is not
// known at once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rendezvous/protocol/messages.hpp"

namespace muster::rendezvous {

/// A failure of which it is not known yet whether it was the first: others have not been heard since the daemon came back.
struct Suspect {
  NodeId node;
  WorkerFailure failure;
  Instant at{};  ///< when that worker ended
  bool operator==(const Suspect&) const = default;
};

/// Was `a` the cause, of these two? What ended first was, unless both came within a moment: then whoever was killed,
/// since a worker may exit, or abort itself, because another one is gone.
bool comes_before(const Suspect& a, const Suspect& b);

/// How the present round comes to its end, while it drains or stops, and why the next one is needed.
struct Ending {
  std::string cause;               ///< what began it
  std::vector<std::string> then;   ///< what happened since
  bool cause_is_known = true;      ///< else `cause` says that it is not: the daemon was away
  std::optional<Suspect> suspect;  ///< of what is heard, what came first; judged once all have spoken
  std::optional<Outcome> outcome;  ///< the job ends with it once drained
  bool charged = false;  ///< it has cost a restart; whoever goes missing meanwhile costs no second one
  Instant deadline{};    ///< of the phase

  /// What is told to agents: "restart 1 of 3 after ...; then n2 was lost (...)".
  std::string reason() const;
  bool operator==(const Ending&) const = default;
};

}  // namespace muster::rendezvous
