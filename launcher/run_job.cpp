#include "launcher/run_job.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>

#include "agent/agent.hpp"
#include "agent/logs/console.hpp"
#include "agent/process/descriptor_limit.hpp"
#include "agent/report/report.hpp"
#include "agent/reserved_ports.hpp"
#include "agent/served_stores.hpp"
#include "launcher/container.hpp"
#include "launcher/last_signals.hpp"
#include "launcher/node_health.hpp"
#include "launcher/rendezvous_host.hpp"
#include "rendezvous/client/in_process_link.hpp"
#include "rendezvous/client/remote_link.hpp"
#include "rendezvous/protocol/policy_values.hpp"

namespace muster::launcher {

namespace {

using agent::Console;
using Say = std::function<void(const std::string&)>;        // a line, without prefix and newline
using SayAsItIs = std::function<void(const std::string&)>;  // text with both

const char* const kLoopback = "127.0.0.1";  // one node: nobody else needs to connect
// For a console that does not read: no worker waits for it any more, but whoever stopped the job may.
constexpr Duration kLastOutputLimit = std::chrono::seconds(60);
constexpr Duration kLastOutputLimitOfAStop = std::chrono::seconds(5);
constexpr Duration kFarewellLimit = std::chrono::seconds(15);
constexpr Duration kLastWordsLimit = std::chrono::seconds(1);  // before a rehearsed fault of our own

rendezvous::JobPolicy policy_of(const Plan& plan) {
  rendezvous::JobPolicy policy;
  policy.min_nodes = plan.min_nodes;
  policy.max_nodes = plan.max_nodes;
  policy.max_restarts = plan.max_restarts;
  policy.restart_window = plan.restart_window;
  policy.drain_grace = plan.graces.rescale;
  policy.stop_deadline =
      std::max({plan.graces.stop, plan.graces.restart, plan.graces.rescale}) + std::chrono::seconds(30);
  if (!plan.meeting) return policy;
  const RendezvousTimes& times = plan.meeting->times;
  policy.join_deadline = times.join.value_or(policy.join_deadline);
  policy.last_call = times.last_call.value_or(policy.last_call);
  policy.closed_grace = times.closed_grace.value_or(policy.closed_grace);
  policy.broken_grace = times.broken_grace.value_or(policy.broken_grace);
  policy.resume_window = times.resume_window.value_or(policy.resume_window);
  policy.settle_window = times.settle.value_or(policy.settle_window);
  policy.first_step_timeout = times.first_step.value_or(policy.first_step_timeout);
  policy.exit_barrier_limit = times.exit_barrier;
  policy.membership_changes = plan.meeting->membership_changes;
  policy.allow_chaos = plan.meeting->allow_chaos;
  return policy;
}

rendezvous::NodeOffer offer_of(const Plan& plan) {
  rendezvous::NodeOffer offer;
  offer.node = plan.node;
  offer.host = plan.host;
  offer.address = kLoopback;
  offer.role = plan.role;
  offer.local_workers = plan.workers.number;
  return offer;
}

/// Room for many workers' pipes, while the workers themselves find the limit that the user set.
std::optional<::rlimit> make_room_for_descriptors(const Say& say) {
  const auto before = agent::raise_descriptor_limit();
  if (before) return *before;
  say(before.error().sentence());
  return std::nullopt;
}

agent::AgentOptions options_of(const Plan& plan, rendezvous::NodeOffer offer, Say say) {
  agent::AgentOptions options;
  options.supervisor.offer = std::move(offer);
  options.supervisor.graces.stop = plan.graces.stop;
  options.supervisor.graces.restart = plan.graces.restart;
  options.supervisor.graces.rescale = plan.graces.rescale;
  if (plan.progress_timeout > Duration::zero()) options.supervisor.progress_limit = plan.progress_timeout;
  if (plan.expect_done) options.supervisor.success_needs = agent::SuccessNeeds::exit_0_after_done;
  for (const WorkerPlacement& spot : plan.placement.workers)
    options.workers.spots.push_back({spot.cpus, spot.visible_devices});
  options.workers.virtual_local_rank = plan.placement.virtual_local_rank;
  if (plan.signals_to_handle) options.stop_signals = *plan.signals_to_handle;
  options.parent = plan.dies_with;
  options.workers.run_id = plan.run_id;
  options.workers.executable = plan.target.command.front();
  options.workers.arguments.assign(plan.target.command.begin() + 1, plan.target.command.end());
  options.workers.environment = changed(own_environment(), plan.variables);
  options.workers.log_folder = plan.run_folder;
  options.workers.descriptor_limit = make_room_for_descriptors(say);
  options.workers.agent_store = !plan.store.in_rank_zero;
  options.workers.usable_cpus = plan.usable_cpus;
  options.workers.output = plan.output;
  options.say = std::move(say);
  return options;
}

/// Whoever provides the worker stores; ServedStores unless worker 0 does it.
class Stores {
 public:
  Stores(boost::asio::io_context& io, const StoreOptions& options, std::string address, Say say)
      : reserved_(options.ports),
        served_(io.get_executor(), {std::move(address), options.ports, options.stall_after, std::move(say)}),
        in_rank_zero_(options.in_rank_zero) {}

  agent::StoreHost& host() {
    if (in_rank_zero_) return reserved_;
    return served_;
  }
  const std::vector<agent::Stall>& stalls() const { return served_.stalls(); }
  void expect_clients(const rendezvous::StoreClients& clients) {
    std::vector<rendezvous::StoreRound::Node> nodes;
    for (const auto& node : clients.nodes)
      nodes.push_back({node.node, node.address, node.first_rank, node.workers});
    served_.expect_clients(clients.round, clients.addresses, std::move(nodes));
  }

 private:
  agent::ReservedPorts reserved_;
  agent::ServedStores served_;
  bool in_rank_zero_;
};

struct JobResult {
  agent::AgentResult agent;
  std::vector<agent::Stall> stalls;
  pid_t daemon = -1;  ///< that was started here
};

agent::JobReport report_of(const Plan& plan, const JobResult& job, const Console& console) {
  const agent::AgentResult& result = job.agent;
  agent::JobReport report;
  report.run_id = plan.run_id;
  report.node = plan.node;
  report.outcome = result.outcome;
  report.stop_signal = result.stop_signal;
  report.stop_signal_unix_ms = result.stop_signal_unix_ms;
  report.stop_grace = result.stop_grace;
  report.stop_signals = result.stop_signals;
  report.survivors = result.survivors;
  report.workers = result.workers;
  report.workers_left_out = result.workers_left_out;
  report.rounds = result.rounds;
  report.stalls = job.stalls;
  report.lost_console_lines = console.dropped_lines();
  report.log_folder = plan.run_folder;
  report.python = plan.target.python;
  if (!plan.run_folder.empty()) report.status_path = plan.run_folder / "status.json";
  return report;
}

/// Before the agent goes, with whom its signals end.
void keep_signals(LastSignals& signals, const Plan& plan) {
  signals.take_over(plan.signals_to_handle.value_or(agent::kStopSignals));
}

JobResult run_alone(const Plan& plan, agent::Guard& guard, NodeHealth& health, LastSignals& signals,
                    boost::asio::io_context& io, const Say& say, const SayAsItIs& say_as_it_is) {
  rendezvous::InProcessLink link(io.get_executor(), plan.run_id, policy_of(plan));
  Stores stores(io, plan.store, kLoopback, say);
  agent::Agent agent(io, options_of(plan, offer_of(plan), say), link, stores.host(), guard);
  health.tell_of(agent);
  say_as_it_is(start_lines(plan));
  for (const std::string& warning : warnings_of(plan, false)) say(warning);
  if (!health.line().empty()) say(health.line());
  agent::AgentResult result;
  agent.start([&](agent::AgentResult ended) {
    result = std::move(ended);
    health.stop();
    io.stop();
  });
  io.run();
  keep_signals(signals, plan);
  return {std::move(result), stores.stalls()};
}

/// What this node proves itself with, and the daemon to it.
struct Credentials {
  std::optional<rendezvous::Token> token;
  std::shared_ptr<rendezvous::Tls> tls;
};

rendezvous::RemoteLinkOptions link_options(const Plan& plan, Credentials credentials, RendezvousHost& host,
                                           Stores& stores, Say say) {
  rendezvous::RemoteLinkOptions options;
  options.endpoint = plan.meeting->endpoint;
  options.job = plan.run_id;
  options.node = plan.node;
  options.policy = policy_of(plan);
  options.token = std::move(credentials.token);
  options.tls = std::move(credentials.tls);
  options.join_deadline = options.policy.join_deadline;
  options.resume_budget = options.policy.resume_window;
  options.notice = [&host, say = std::move(say)](const std::string& line) {
    say(line);
    if (line.starts_with("cannot reach")) host.explain();
  };
  options.unreachable = [&host] { host.look_again(); };
  options.settings = {{rendezvous::kWorkerStoreSetting, plan.store.in_rank_zero ? "rank0" : "agent"}};
  options.own_addresses = outgoing_addresses;
  options.store_clients = [&stores](const auto& clients) { stores.expect_clients(clients); };
  return options;
}

/// The last words to the daemon go out, so that it need not wait for this node; whoever is in a hurry goes without. Others
/// have work in `io` that does not end.
void say_farewell(const rendezvous::RemoteLink& link, const LastSignals& signals,
                  boost::asio::io_context& io) {
  const auto limit = std::chrono::steady_clock::now() + kFarewellLimit;
  const auto hurried = [&] {
    pollfd came{signals.fd(), POLLIN, 0};
    return ::poll(&came, 1, 0) > 0;
  };
  for (io.restart(); !link.last_words_out() && !io.stopped() && !hurried();) {
    if (std::chrono::steady_clock::now() >= limit) return;
    io.run_one_for(std::chrono::milliseconds(50));
  }
}

Result<JobResult> run_with_others(const Plan& plan, Credentials credentials, agent::Guard& guard,
                                  NodeHealth& health, LastSignals& signals, boost::asio::io_context& io,
                                  const Say& say, const SayAsItIs& say_as_it_is) {
  RendezvousHost host(io, *plan.meeting, plan.run_folder.empty() ? "" : plan.run_folder / "musterd.log", say);
  if (const auto settled = host.settle(); !settled) return settled.error();
  rendezvous::NodeOffer offer = offer_of(plan);
  offer.address = host.local_address();
  offer.preferred_group_rank = plan.meeting->node_rank;
  offer.hosts_endpoint = host.place().here();
  Stores stores(io, plan.store, host.local_address(), say);
  rendezvous::RemoteLink link(io, link_options(plan, std::move(credentials), host, stores, say));
  agent::AgentOptions options = options_of(plan, offer, say);
  options.flush = [console = Console::of(io.get_executor())] { console->drain(kLastWordsLimit); };
  agent::Agent agent(io, std::move(options), link, stores.host(), guard);
  health.tell_of(agent);
  host.on_daemon([&agent](pid_t pid) { agent.spare(pid); });
  say_as_it_is(start_lines(plan, {host.local_address(), host.started_one()}));
  for (const std::string& warning : warnings_of(plan, host.place().loopback)) say(warning);
  if (!health.line().empty()) say(health.line());

  agent::AgentResult result;
  agent.start([&](agent::AgentResult ended) {
    result = std::move(ended);
    health.stop();
    host.stop();
    io.stop();
  });
  io.run();
  keep_signals(signals, plan);
  say_farewell(link, signals, io);
  return JobResult{std::move(result), stores.stalls(), host.daemon()};
}

std::optional<Error> check_local_addr(Plan& plan) {
  std::string& wanted = plan.meeting->local_addr;
  if (wanted.empty()) return std::nullopt;
  const auto addresses = addresses_of(wanted);
  if (!addresses) return Error{"--local-addr", addresses.error().sentence()};
  wanted = addresses->front().to_string();
  // Worker 0 may be behind a translation of addresses, which only its own store can allow for.
  if (plan.store.in_rank_zero) return std::nullopt;
  if (const auto error = not_ours(addresses->front()))
    return Error{"--local-addr", error->sentence(), "this node's worker store has to listen there"};
  return std::nullopt;
}

/// What has to be right before any other node is bothered.
Result<Credentials> prepare_meeting(Plan& plan, const Say& say) {
  Credentials credentials;
  if (!plan.meeting) return credentials;
  if (const auto error = check_local_addr(plan)) return *error;
  if (const auto policy = rendezvous::validate(policy_of(plan)); !policy) return policy.error();
  auto tls = rendezvous::load_tls(plan.meeting->tls, rendezvous::TlsSide::peer);
  if (!tls) return tls.error();
  if (!tls->warning.empty()) say(tls->warning);
  credentials.tls = std::move(tls->tls);
  if (plan.meeting->token_file.empty()) return credentials;
  auto loaded = rendezvous::load_token(plan.meeting->token_file);
  if (!loaded) return loaded.error();
  if (!loaded->warning.empty()) say(loaded->warning);
  credentials.token = std::move(loaded->token);
  return credentials;
}

/// The status file, then the last screen, then what the console lost even so.
void tell_end(const Plan& plan, const JobResult& job, Console& console, const LastSignals& signals) {
  agent::JobReport report = report_of(plan, job, console);
  const auto write_status = [&] {
    if (report.status_path.empty()) return;
    const auto written = agent::write_status_file(report.status_path, agent::status_json(report));
    if (written) return;
    console.say(Console::Stream::err, "muster: " + written.error().sentence() + "\n");
    report.status_path.clear();
  };
  write_status();
  console.say(Console::Stream::err, agent::render_report(report));
  console.drain(job.agent.stop_signal != 0 ? kLastOutputLimitOfAStop : kLastOutputLimit, signals.fd());
  if (console.dropped_lines() == report.lost_console_lines) return;
  report.lost_console_lines = console.dropped_lines();
  write_status();
}

}  // namespace

int run_job(Plan plan, agent::Guard& guard) {
  LastSignals signals;
  boost::asio::io_context io{1};
  const auto console = Console::of(io.get_executor());
  const auto say_as_it_is = [&console](const std::string& text) { console->say(Console::Stream::err, text); };
  const auto say = [&](const std::string& line) { say_as_it_is("muster: " + line + "\n"); };
  const auto fail = [&](const Error& error, int exit_code) {
    say(error.sentence());
    console->drain(kLastOutputLimit, signals.fd());
    return exit_code;
  };
  auto credentials = prepare_meeting(plan, say);
  if (!credentials) return fail(credentials.error(), agent::kUsageExitCode);
  NodeHealth health;
  if (const auto listens = health.listen(io, plan); !listens)
    return fail(listens.error(), agent::kLauncherFailedExitCode);
  const Result<JobResult> ran = plan.meeting ? run_with_others(plan, std::move(*credentials), guard, health,
                                                               signals, io, say, say_as_it_is)
                                             : run_alone(plan, guard, health, signals, io, say, say_as_it_is);
  if (!ran) {
    health.stop();
    return fail(ran.error(), agent::kLauncherFailedExitCode);
  }
  tell_end(plan, *ran, *console, signals);
  signals.forget();
  outstay(ran->daemon, signals.fd(), [&](const std::string& line) {
    say(line);
    console->drain(kLastOutputLimitOfAStop, signals.fd());
  });
  return ran->agent.exit_code;
}

}  // namespace muster::launcher
