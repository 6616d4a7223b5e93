// What goes into a Job and what comes out of it.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "rendezvous/protocol/messages.hpp"

namespace muster::rendezvous {

// ---- in ------------------------------------------------------------------------------------------------

/// One message from the agent that speaks for `node`.
struct FromAgent {
  NodeId node;
  AgentMessage message;
};

/// How a connection ended decides how long its node may be away before it is lost.
enum class LossKind : std::uint8_t {
  closed,  ///< the other side closed it, or its process ended
  broken,  ///< an error of the network
  silent   ///< nothing heard for the heartbeat timeout: there is nothing more to wait for
};

struct ConnectionLost {
  NodeId node;
  LossKind kind = LossKind::closed;
  std::string reason;
};

/// Time has passed; wanted when wake_at() says so, harmless at any time.
struct Tick {};

/// The daemon comes back from its journal: every connection is gone, and it is the daemon that was away.
struct Restarted {};

// An operator's wishes; each is answered by exactly one Answer.
struct CloseRoster {};  ///< no more nodes are coming: form the round from those who are here
struct DrainNode {
  NodeId node;
};
struct Scale {
  int min_nodes = 1;
  int max_nodes = 1;
};
struct ClearCooldown {
  NodeId node;
};
struct StopJob {
  std::string reason;
};
/// A fault on purpose: it changes nothing here, and what comes of it is heard from the agents. A journal keeps it for
/// the history alone.
struct Rehearse {
  std::optional<int> rank;  ///< of the live round: its worker gets the signal; none: the agent of `node` does
  NodeId node;
  int signal_number = 0;
};

using Event = std::variant<FromAgent, ConnectionLost, Tick, Restarted, CloseRoster, DrainNode, Scale,
                           ClearCooldown, StopJob, Rehearse>;

// ---- out -----------------------------------------------------------------------------------------------

struct ToAgent {
  NodeId node;
  DaemonMessage message;
};

struct JobOver {
  Outcome outcome;
};

/// To the operator who asked.
struct Answer {
  bool done = true;
  std::string text;
  std::string event = {};  ///< what the history says of it; empty: "by an operator: " and the text
};

using Effect = std::variant<ToAgent, JobOver, Answer>;

}  // namespace muster::rendezvous
