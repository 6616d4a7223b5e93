// Many agents on one machine: how long from the first connect to the last assignment, what it costs an agent
// in messages and bytes, and what it costs the daemon in memory and time.
//
// The daemon is a real musterd in a process of its own; the agents are real links, all on one thread here.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <memory>
#include <vector>

#include "base/unique_fd.hpp"
#include "rendezvous/client/remote_link.hpp"

namespace muster::rendezvous {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  int agents = 1000;
  std::string state_dir;
  double idle_s = 0;
  double limit_s = 60;
  double assert_s = 0;
  double assert_daemon_kb = 0;
};

class DaemonProcess {
 public:
  explicit DaemonProcess(const Options& options) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("pipe: " + errno_text(errno));
    UniqueFd ready(ends[0]);
    UniqueFd tell(ends[1]);
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("fork: " + errno_text(errno));
    if (pid_ == 0) exec(options, tell.get());
    tell.reset();
    char byte = 0;
    while (::read(ready.get(), &byte, 1) == 1 && byte != '\n') address_ += byte;
    if (address_.empty()) throw std::runtime_error("musterd did not start");
  }
  ~DaemonProcess() {
    if (::kill(pid_, SIGTERM) != 0) std::perror("kill musterd");
    int status = 0;
    if (::waitpid(pid_, &status, 0) != pid_) std::perror("wait for musterd");
  }
  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;

  Endpoint endpoint() const { return *parse_endpoint(address_, 0); }

  /// Resident memory in KB, as /proc/PID/status gives it.
  double resident_kb() const {
    std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
    for (std::string word; status >> word;)
      if (double kb = 0; word == "VmRSS:" && status >> kb) return kb;
    return 0;
  }
  double cpu_s() const {
    std::ifstream stat("/proc/" + std::to_string(pid_) + "/stat");
    std::string word;
    double ticks = 0;
    for (int field = 1; stat >> word; ++field)
      if (field == 14 || field == 15) ticks += std::stod(word);  // utime, stime
    return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }

 private:
  [[noreturn]] static void exec(const Options& options, int ready_fd) {
    const std::string program = std::string(MUSTER_BIN_DIR) + "/musterd";
    const auto fd = std::to_string(ready_fd);
    std::vector<std::string> arguments{program, "--listen",    "127.0.0.1:0", "--ready-fd",
                                       fd,      "--log-level", "warning"};
    if (!options.state_dir.empty()) arguments.insert(arguments.end(), {"--state-dir", options.state_dir});
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    ::execv(program.c_str(), argv.data());
    std::perror(program.c_str());
    ::_exit(127);
  }

  pid_t pid_ = -1;
  std::string address_;
};

struct Load {
  boost::asio::io_context io{1};
  std::vector<std::unique_ptr<RemoteLink>> links;
  int assigned = 0;
  std::string trouble;

  void add(const Endpoint& endpoint, int number, int of) {
    RemoteLinkOptions options;
    options.endpoint = endpoint;
    options.job = "load";
    options.node = fmt::format("n{}", number);
    options.incarnation = options.node;
    options.policy.min_nodes = options.policy.max_nodes = of;
    options.connect_timeout = std::chrono::seconds(30);
    options.handshake_timeout = std::chrono::seconds(30);
    auto& link = *links.emplace_back(std::make_unique<RemoteLink>(io, options));
    link.on_message([this](const DaemonMessage& message) {
      if (std::holds_alternative<Assignment>(message)) ++assigned;
      if (const auto* refused = std::get_if<Refused>(&message)) trouble = refused->reason;
      if (const auto* ended = std::get_if<JobEnded>(&message)) trouble = ended->outcome.reason;
    });
    NodeOffer offer;
    offer.node = options.node;
    offer.host = options.node;
    offer.store_port = 29500;
    offer.local_workers = 8;
    offer.incarnation = options.incarnation;
    link.send(Join{offer});
    link.start();
  }

  bool run_until_assigned(double limit_s) {
    const auto deadline =
        Clock::now() + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(limit_s));
    while (assigned < static_cast<int>(links.size()) && trouble.empty() && Clock::now() < deadline)
      io.run_one_until(deadline);
    return assigned == static_cast<int>(links.size());
  }
};

void raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::perror("getrlimit");
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) std::perror("setrlimit");
}

void print_costs(const Load& load) {
  RemoteLink::Statistics sum, most;
  for (const auto& link : load.links) {
    const auto one = link->statistics();
    sum.connections += one.connections;
    sum.messages_sent += one.messages_sent;
    sum.messages_received += one.messages_received;
    sum.bytes_sent += one.bytes_sent;
    sum.bytes_received += one.bytes_received;
    most.messages_received = std::max(most.messages_received, one.messages_received);
  }
  const auto n = static_cast<double>(load.links.size());
  fmt::print(
      "per agent: {:.2f} connections, {:.1f} messages out, {:.1f} in (at most {}), {:.0f} bytes out, {:.0f} "
      "in\n",
      sum.connections / n, static_cast<double>(sum.messages_sent) / n,
      static_cast<double>(sum.messages_received) / n, most.messages_received,
      static_cast<double>(sum.bytes_sent) / n, static_cast<double>(sum.bytes_received) / n);
}

int run(const Options& options) {
  raise_file_limit();
  const DaemonProcess daemon(options);
  const auto before_kb = daemon.resident_kb();
  Load load;
  const auto start = Clock::now();
  for (int i = 0; i < options.agents; ++i) load.add(daemon.endpoint(), i, options.agents);
  const bool all = load.run_until_assigned(options.limit_s);
  const double took = std::chrono::duration<double>(Clock::now() - start).count();
  const double daemon_kb = (daemon.resident_kb() - before_kb) / options.agents;
  fmt::print("{} agents: {} assigned after {:.3f} s{}\n", options.agents, load.assigned, took,
             load.trouble.empty() ? "" : "; " + load.trouble);
  fmt::print("daemon: {:.1f} KB per agent, {:.2f} s of CPU\n", daemon_kb, daemon.cpu_s());
  print_costs(load);
  if (!all) return 1;
  if (options.idle_s > 0) {
    const double cpu_before = daemon.cpu_s();
    load.io.run_for(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(options.idle_s)));
    fmt::print("idle for {:.0f} s: daemon used {:.2f} % of a core\n", options.idle_s,
               100 * (daemon.cpu_s() - cpu_before) / options.idle_s);
  }
  if (options.assert_s > 0 && took > options.assert_s)
    return fmt::print("slower than {} s\n", options.assert_s), 1;
  if (options.assert_daemon_kb > 0 && daemon_kb > options.assert_daemon_kb)
    return fmt::print("more than {} KB per agent\n", options.assert_daemon_kb), 1;
  return 0;
}

}  // namespace
}  // namespace muster::rendezvous

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  muster::rendezvous::Options options;
  CLI::App app("Joins many agents to one musterd and measures");
  app.add_option("--agents", options.agents)->check(CLI::Range(1, 100'000))->capture_default_str();
  app.add_option("--state-dir", options.state_dir, "let the daemon keep a journal there");
  app.add_option("--idle", options.idle_s, "seconds of heartbeats to measure afterwards");
  app.add_option("--limit", options.limit_s, "seconds after which it is given up")->capture_default_str();
  app.add_option("--assert-seconds", options.assert_s, "fail when it takes longer");
  app.add_option("--assert-daemon-kb", options.assert_daemon_kb, "fail when an agent costs the daemon more");
  CLI11_PARSE(app, argc, argv);
  return muster::rendezvous::run(options);
}
