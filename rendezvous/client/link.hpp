// The agent's end of its conversation with whoever decides: the daemon over the network, or a rendezvous core
// in this very process (single node). The agent cannot tell which one it has.
#pragma once

#include <functional>

#include "rendezvous/protocol/messages.hpp"

namespace muster::rendezvous {

/// Used from one thread (the agent's). Messages arrive in order, never from inside send().
class Link {
 public:
  using Receiver = std::function<void(const DaemonMessage&)>;

  virtual ~Link() = default;
  Link() = default;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  /// Where the daemon's messages go. Set once, before start().
  virtual void on_message(Receiver receiver) = 0;
  virtual void start() = 0;
  virtual void send(AgentMessage message) = 0;
  /// Ends the conversation after what was sent is out; no message is delivered afterwards.
  virtual void close() = 0;
};

}  // namespace muster::rendezvous
