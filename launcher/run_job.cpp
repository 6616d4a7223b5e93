#include "launcher/run_job.hpp"

#include <unistd.h>

#include <boost/asio/io_context.hpp>

#include "agent/agent.hpp"
#include "agent/logs/console.hpp"
#include "agent/report/report.hpp"
#include "agent/served_stores.hpp"
#include "rendezvous/client/in_process_link.hpp"

namespace muster::launcher {

namespace {

using agent::Console;

const char* const kLoopback = "127.0.0.1";                      // one node: nobody else needs to connect
constexpr Duration kLastOutputLimit = std::chrono::seconds(2);  // for a console that does not read

std::vector<std::string> own_environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry; ++entry) entries.emplace_back(*entry);
  return entries;
}

rendezvous::JobPolicy policy_of(const Plan& plan) {
  rendezvous::JobPolicy policy;
  policy.max_restarts = plan.max_restarts;
  policy.drain_grace = plan.stop_grace;
  policy.stop_deadline = plan.stop_grace + std::chrono::seconds(30);
  return policy;
}

agent::AgentOptions options_of(const Plan& plan, std::function<void(const std::string&)> say) {
  agent::AgentOptions options;
  options.supervisor.offer.node = plan.node;
  options.supervisor.offer.host = plan.host;
  options.supervisor.offer.address = kLoopback;
  options.supervisor.offer.local_workers = plan.workers.number;
  options.supervisor.graces.stop = plan.stop_grace;
  options.supervisor.graces.restart = plan.stop_grace;
  options.supervisor.graces.rescale = plan.stop_grace;
  options.workers.run_id = plan.run_id;
  options.workers.executable = plan.target.command.front();
  options.workers.arguments.assign(plan.target.command.begin() + 1, plan.target.command.end());
  options.workers.environment = own_environment();
  options.workers.log_folder = plan.run_folder;
  options.workers.usable_cpus = plan.usable_cpus;
  options.workers.line_prefix = [](const rendezvous::Assignment&, int) { return std::string(); };
  options.say = std::move(say);
  return options;
}

agent::JobReport report_of(const Plan& plan, const agent::AgentResult& result) {
  agent::JobReport report;
  report.run_id = plan.run_id;
  report.node = plan.node;
  report.outcome = result.outcome;
  report.stop_signal = result.stop_signal;
  report.workers = result.workers;
  report.log_folder = plan.run_folder;
  if (!plan.run_folder.empty()) report.status_path = plan.run_folder / "status.json";
  return report;
}

}  // namespace

int run_job(const Plan& plan, agent::Guard& guard) {
  boost::asio::io_context io{1};
  const auto console = Console::of(io.get_executor());
  const auto say = [&console](const std::string& line) {
    console->write(Console::Stream::err, "muster: " + line + "\n");
  };
  rendezvous::InProcessLink link(io.get_executor(), plan.run_id, policy_of(plan));
  agent::ServedStores stores(io.get_executor(), kLoopback, say);
  agent::Agent agent(io, options_of(plan, say), link, stores, guard);
  console->write(Console::Stream::err, start_lines(plan));

  agent::AgentResult result;
  agent.start([&](agent::AgentResult ended) {
    result = std::move(ended);
    io.stop();
  });
  io.run();

  agent::JobReport report = report_of(plan, result);
  if (!report.status_path.empty()) {
    const auto written = agent::write_status_file(report.status_path, agent::status_json(report));
    if (!written) {
      say(written.error().sentence());
      report.status_path.clear();
    }
  }
  console->write(Console::Stream::err, agent::render_report(report));
  console->drain(kLastOutputLimit);
  return result.exit_code;
}

}  // namespace muster::launcher
