// This node's health page, from before its agent exists until it is over.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>

#include "agent/agent.hpp"
#include "agent/health/health_server.hpp"
#include "launcher/plan.hpp"

namespace muster::launcher {

/// Used from the io's thread.
class NodeHealth {
 public:
  /// Where the plan says; nothing is done if it says nothing.
  Result<void> listen(boost::asio::io_context& io, const Plan& plan);
  /// Until stop().
  void tell_of(const agent::Agent& agent) { agent_ = &agent; }
  void stop();

  /// "health: http://127.0.0.1:8080/health", for the user; empty: there is none.
  std::string line() const;

 private:
  std::unique_ptr<agent::HealthServer> server_;
  const agent::Agent* agent_ = nullptr;
};

}  // namespace muster::launcher
