// A job of one node needs no daemon: the rendezvous core runs in the agent's own process, behind the same
// Link that the network client offers.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <memory>
#include <string>

#include "rendezvous/client/link.hpp"
#include "rendezvous/core/policy.hpp"

namespace muster::rendezvous {

/// All calls from the executor's one thread (or strand). The receiver is called from the executor, never from
/// inside send(). The executor must outlive what was posted to it; the link itself may go at any time.
class InProcessLink final : public Link {
 public:
  /// `policy` must have passed validate().
  InProcessLink(boost::asio::any_io_executor executor, std::string job_id, JobPolicy policy);
  ~InProcessLink() override;

  void on_message(Receiver receiver) override;
  void start() override;
  void send(AgentMessage message) override;
  void close() override;

 private:
  class Conversation;
  std::shared_ptr<Conversation> conversation_;
};

}  // namespace muster::rendezvous
