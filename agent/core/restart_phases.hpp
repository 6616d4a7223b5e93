// Where the time between two rounds goes, as this node sees it.
//
//   detect      a worker here failed            -> its last output was read, and the rendezvous was told
//   tell        it was told                     -> it answered
//   drain       workers were asked to save      -> all of them on all nodes were safe, or the time was over
//   stop        the round is to be stopped      -> nothing of it is alive here
//   rendezvous  this node is ready for a round  -> the round was formed
//   spawn       the round was formed            -> all of its workers here were started
//
// They follow one another without a gap, so their sum is the time without work. One that did not happen took no time: a
// failure elsewhere begins here with "stop", the first round with "rendezvous".
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"

namespace muster::agent {

enum class RestartPhase { detect, tell, drain, stop, rendezvous, spawn };

inline constexpr std::array<const char*, 6> kRestartPhaseNames = {"detect", "tell",       "drain",
                                                                  "stop",   "rendezvous", "spawn"};

/// By phase; nothing: it did not happen.
using RestartPhases = std::array<std::optional<Duration>, kRestartPhaseNames.size()>;

/// A round that this node was in.
struct RoundRecord {
  int round = 0;
  int nodes = 0;
  int world_size = 0;
  std::string reason;
  RestartPhases phases;  ///< before it
};

class PhaseClock {
 public:
  /// Ends the phase that runs. Phases come in their order: an earlier one than that which runs is none any more.
  void enter(RestartPhase phase, Instant now);
  /// Ends the last phase; the next one begins anew.
  RestartPhases finish(Instant now);

 private:
  void close(Instant now);

  RestartPhases spent_;
  std::optional<RestartPhase> running_;
  Instant since_{};
};

/// "drain 0.6 s, stop 0.1 s, rendezvous 9 ms, spawn 14 ms".
std::string phases_text(const RestartPhases& phases);

}  // namespace muster::agent
