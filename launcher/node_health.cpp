#include "launcher/node_health.hpp"

namespace muster::launcher {

Result<void> NodeHealth::listen(boost::asio::io_context& io, const Plan& plan) {
  if (plan.health.empty()) return {};
  const agent::HealthSubject subject{plan.run_id, plan.node, plan.progress_timeout};
  auto server = agent::HealthServer::listen(io, plan.health, [this, subject](std::string_view target) {
    agent::Vitals vitals;
    vitals.why = "the agent is being started";
    return agent::answer_health(target, subject, agent_ ? agent_->vitals() : vitals);
  });
  if (!server) return server.error();
  server_ = std::move(*server);
  return {};
}

void NodeHealth::stop() {
  if (server_) server_->stop();
  agent_ = nullptr;
}

std::string NodeHealth::line() const { return server_ ? "health: " + server_->address() : ""; }

}  // namespace muster::launcher
