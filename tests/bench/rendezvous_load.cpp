// Many agents on one machine: how long from the first connect to the last assignment, and to the next one after a
// node was lost; what it costs an agent in messages and bytes, and what it costs the daemon in memory and time.
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
#include <nlohmann/json.hpp>
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
  bool lose_one = false;
  bool json = false;
  TlsFiles tls;
  double assert_s = 0;
  double assert_daemon_cpu_s = 0;
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
    if (options.tls.any())
      arguments.insert(arguments.end(),
                       {"--tls-cert", options.tls.certificate, "--tls-key", options.tls.key});
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

constexpr Duration kSettleWindow = std::chrono::milliseconds(200);

struct Load {
  boost::asio::io_context io{1};
  std::shared_ptr<Tls> tls;
  std::vector<std::unique_ptr<RemoteLink>> links;

  ~Load() {
    links.clear();
    if (io.stopped()) io.restart();
    io.run_for(std::chrono::seconds(30));  // until the connections have ended
  }

  int assigned = 0;
  std::string trouble;

  void add(const Endpoint& endpoint, int number, int of, bool lose_one) {
    RemoteLinkOptions options;
    options.endpoint = endpoint;
    options.job = "load";
    options.node = fmt::format("n{}", number);
    options.incarnation = options.node;
    options.tls = tls;
    const auto address = fmt::format("10.{}.{}.{}", number >> 16, number >> 8 & 255, number & 255);
    options.own_addresses = [address] { return std::vector<std::string>{address, "fd00::" + address}; };
    options.policy.max_nodes = of;
    options.policy.min_nodes = lose_one ? of - 1 : of;
    options.policy.settle_window = kSettleWindow;
    options.policy.closed_grace = std::chrono::milliseconds(1);
    options.connect_timeout = std::chrono::seconds(30);
    options.handshake_timeout = std::chrono::seconds(30);
    auto& link = *links.emplace_back(std::make_unique<RemoteLink>(io, options));
    NodeOffer offer;
    offer.node = options.node;
    offer.host = options.node;
    offer.store_port = 29500;
    offer.local_workers = 8;
    offer.incarnation = options.incarnation;
    link.on_message([this, &link, offer](const DaemonMessage& message) { answer(link, offer, message); });
    link.send(Join{offer});
    link.start();
  }

  // As an agent whose workers stop at once.
  void answer(RemoteLink& link, const NodeOffer& offer, const DaemonMessage& message) {
    if (std::holds_alternative<Assignment>(message)) ++assigned;
    if (const auto* refused = std::get_if<Refused>(&message)) trouble = refused->reason;
    if (const auto* ended = std::get_if<JobEnded>(&message)) trouble = ended->outcome.reason;
    if (const auto* stop = std::get_if<StopWorkers>(&message)) {
      link.send(WorkersStopped{stop->round});
      link.send(Join{offer, stop->round, 0});
    }
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

double own_cpu_s() {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) std::perror("getrusage");
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double seconds_since(Instant start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

using Figures = nlohmann::ordered_json;

void add_costs(const Load& load, Figures& figures) {
  RemoteLink::Statistics sum;
  std::uint64_t most = 0;
  for (const auto& link : load.links) {
    const auto one = link->statistics();
    sum.connections += one.connections;
    sum.messages_sent += one.messages_sent;
    sum.messages_received += one.messages_received;
    sum.bytes_sent += one.bytes_sent;
    sum.bytes_received += one.bytes_received;
    most = std::max(most, one.messages_received);
  }
  const auto n = static_cast<double>(load.links.size());
  figures["connections_per_agent"] = sum.connections / n;
  figures["messages_out_per_agent"] = static_cast<double>(sum.messages_sent) / n;
  figures["messages_in_per_agent"] = static_cast<double>(sum.messages_received) / n;
  figures["messages_in_at_most"] = most;
  figures["bytes_out_per_agent"] = static_cast<double>(sum.bytes_sent) / n;
  figures["bytes_in_per_agent"] = static_cast<double>(sum.bytes_received) / n;
}

void print(const Figures& figures, bool json) {
  if (json) return fmt::print("{}\n", figures.dump());
  for (const auto& [name, value] : figures.items())
    if (value.is_number_float())
      fmt::print("{:<24} {:.3f}\n", name, value.get<double>());
    else
      fmt::print("{:<24} {}\n", name, value.dump());
}

// Its connection closes, and all others get their place in the next round.
bool lose_one(Load& load, const Options& options, Figures& figures) {
  load.assigned = 0;
  const auto start = Clock::now();
  load.links.erase(load.links.begin());
  const bool all = load.run_until_assigned(options.limit_s);
  figures["reform_beyond_settle_s"] =
      seconds_since(start) - std::chrono::duration<double>(kSettleWindow).count();
  return all;
}

void stay_idle(Load& load, const DaemonProcess& daemon, const Options& options, Figures& figures) {
  const double cpu_before = daemon.cpu_s();
  load.io.run_for(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(options.idle_s)));
  figures["idle_percent_of_a_core"] = 100 * (daemon.cpu_s() - cpu_before) / options.idle_s;
}

int run(const Options& options) {
  raise_file_limit();
  Load load;
  auto tls = load_tls({"", "", options.tls.authority}, TlsSide::peer);
  if (!tls) return fmt::print("{}\n", tls.error().sentence()), 1;
  load.tls = tls->tls;
  const DaemonProcess daemon(options);
  const auto before_kb = daemon.resident_kb();
  const auto start = Clock::now();
  for (int i = 0; i < options.agents; ++i) load.add(daemon.endpoint(), i, options.agents, options.lose_one);
  bool all = load.run_until_assigned(options.limit_s);
  const double took_s = seconds_since(start);
  const double daemon_kb = (daemon.resident_kb() - before_kb) / options.agents;
  Figures figures{
      {"agents", options.agents},         {"assigned", load.assigned},      {"formed_s", took_s},
      {"daemon_kb_per_agent", daemon_kb}, {"daemon_cpu_s", daemon.cpu_s()}, {"load_cpu_s", own_cpu_s()}};
  add_costs(load, figures);
  if (all && options.lose_one) all = lose_one(load, options, figures);
  if (all && options.idle_s > 0) stay_idle(load, daemon, options, figures);
  if (!load.trouble.empty()) figures["trouble"] = load.trouble;
  print(figures, options.json);
  if (options.assert_s > 0 && took_s > options.assert_s)
    return fmt::print("slower than {} s\n", options.assert_s), 1;
  if (options.assert_daemon_cpu_s > 0 && figures["daemon_cpu_s"] > options.assert_daemon_cpu_s)
    return fmt::print("the daemon needed more than {} s of a processor\n", options.assert_daemon_cpu_s), 1;
  if (options.assert_daemon_kb > 0 && daemon_kb > options.assert_daemon_kb)
    return fmt::print("more than {} KB per agent\n", options.assert_daemon_kb), 1;
  return all ? 0 : 1;
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
  app.add_flag("--lose-one", options.lose_one,
               "lose a node afterwards, and measure until the rest is in a round");
  app.add_flag("--json", options.json, "print one line of JSON");
  app.add_option("--tls-cert", options.tls.certificate, "speak TLS: the daemon's certificate");
  app.add_option("--tls-key", options.tls.key, "its key");
  app.add_option("--tls-ca", options.tls.authority, "what the agents check it against");
  app.add_option("--assert-seconds", options.assert_s, "fail when it takes longer");
  app.add_option("--assert-daemon-cpu", options.assert_daemon_cpu_s,
                 "fail when the daemon needs more seconds of a processor");
  app.add_option("--assert-daemon-kb", options.assert_daemon_kb, "fail when an agent costs the daemon more");
  CLI11_PARSE(app, argc, argv);
  return muster::rendezvous::run(options);
}
