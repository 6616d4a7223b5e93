// Load for a store server that speaks dialect C (ours, and PyTorch's from 2.1 on), from one thread.
//   store_load --port P MEASURE [numbers]   prints one line of JSON
// Every client has one request under way, as PyTorch's have, or --depth of them. Latencies are from before the send to after the
// receive of the last byte.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <stdexcept>
#include <vector>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "rendezvous/store/codec.hpp"

namespace {

using namespace muster;
using namespace muster::rendezvous;
using Clock = std::chrono::steady_clock;

constexpr std::size_t value_bytes = 64;
constexpr int events_max = 512;

[[noreturn]] void fail(const char* what) { throw ErrorException(errno_error(what, errno)); }

double micros(Clock::duration span) { return std::chrono::duration<double, std::micro>(span).count(); }
double seconds(Clock::duration span) { return std::chrono::duration<double>(span).count(); }

void put(std::string& out, StoreOp op, std::string_view key, std::string_view value = {},
         std::int64_t number = 0) {
  StoreRequest request;
  request.op = op;
  request.key = key;
  request.value = value;
  request.number = number;
  if (op == StoreOp::wait || op == StoreOp::check) request.keys = {key};
  append_request(StoreDialect::c, request, out);
}

class Latencies {
 public:
  void add(Clock::duration span) { spans_.push_back(span); }
  std::size_t size() const { return spans_.size(); }
  double percentile_us(double share) {
    if (spans_.empty()) return 0;
    std::sort(spans_.begin(), spans_.end());
    return micros(
        spans_[std::min(spans_.size() - 1, static_cast<std::size_t>(share * double(spans_.size())))]);
  }

 private:
  std::vector<Clock::duration> spans_;
};

struct Client {
  UniqueFd fd;
  std::size_t owed = 0;  ///< bytes of the reply under way
  Clock::time_point sent;
};

/// Clients at one server, and what they do next.
class Load {
 public:
  explicit Load(std::uint16_t port) : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    server_.sin_family = AF_INET;
    server_.sin_port = htons(port);
    server_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  }

  /// Greets as PyTorch does since 2.5.
  void connect(std::size_t count) {
    open(count);
    for (std::size_t i = 0; i < clients.size(); ++i) greet(i);
    await_all();
  }

  void open(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      Client client{UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), 0, {}};
      if (!client.fd) fail("socket");
      if (::connect(client.fd.get(), reinterpret_cast<sockaddr*>(&server_), sizeof server_) != 0)
        fail("connect");
      const int yes = 1;
      if (::setsockopt(client.fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) != 0) fail("setsockopt");
      epoll_event event{.events = EPOLLIN, .data = {.u64 = clients.size()}};
      if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, client.fd.get(), &event) != 0) fail("epoll_ctl");
      clients.push_back(std::move(client));
    }
  }

  void greet(std::size_t client) {
    std::string out;
    put(out, StoreOp::validate, {});
    put(out, StoreOp::ping, {}, {}, 1234);
    send(client, out, 4);
  }

  void send(std::size_t index, const std::string& bytes, std::size_t reply_bytes) {
    Client& client = clients[index];
    if (client.owed == 0 && reply_bytes > 0) ++busy_;
    client.owed += reply_bytes;
    client.sent = Clock::now();
    if (::send(client.fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(bytes.size()))
      fail("send");
  }

  /// Whose reply is whole within `timeout_ms` (-1: no limit).
  void poll(int timeout_ms, const std::function<void(std::size_t)>& answered) {
    epoll_event events[events_max];
    const int count = ::epoll_wait(epoll_.get(), events, events_max, timeout_ms);
    if (count < 0 && errno != EINTR) fail("epoll_wait");
    for (int i = 0; i < count; ++i) {
      Client& client = clients[events[i].data.u64];
      char bytes[4096];
      const ssize_t got = ::recv(client.fd.get(), bytes, sizeof bytes, MSG_DONTWAIT);
      if (got < 0 && errno == EAGAIN) continue;
      if (got < 0) fail("recv");
      if (got == 0 || static_cast<std::size_t>(got) > client.owed)
        throw std::runtime_error(got == 0 ? "the server closed a connection"
                                          : "more came than was asked for");
      client.owed -= static_cast<std::size_t>(got);
      if (client.owed > 0) continue;
      --busy_;
      answered(events[i].data.u64);
    }
  }

  void await_all() {
    while (busy_ > 0) poll(-1, [](std::size_t) {});
  }
  std::size_t busy() const { return busy_; }

  std::vector<Client> clients;

 private:
  UniqueFd epoll_;
  sockaddr_in server_{};
  std::size_t busy_ = 0;
};

struct Options {
  std::uint16_t port = 0;
  std::string measure;
  std::size_t clients = 64;
  std::size_t depth = 1;  ///< requests of a client under way at once
  double limit_s = 2;
};

void print_rate(double requests, double took_s, Latencies& latencies) {
  std::cout << fmt::format("{{\"per_s\": {:.0f}, \"p50_us\": {:.1f}, \"p99_us\": {:.1f}, \"s\": {:.3f}}}\n",
                           requests / took_s, latencies.percentile_us(0.5), latencies.percentile_us(0.99),
                           took_s);
}

/// The same request again and again from each client, for a while. A SET has no reply: PyTorch's clients send
/// one and go on, so here a CHECK after each eight tells that they were taken.
void measure_request(const Options& options) {
  Load load(options.port);
  load.connect(options.clients);
  const std::string value(value_bytes, 'v');
  std::string bytes;
  std::size_t reply = 0;
  std::size_t requests = 1;
  if (options.measure == "set") {
    for (int i = 0; i < 8; ++i) put(bytes, StoreOp::set, fmt::format("/bench/{}", i), value);
    put(bytes, StoreOp::check, "/bench/0");
    reply = 1;
    requests = 9;
  } else if (options.measure == "get") {
    put(bytes, StoreOp::get, "/bench/0");
    reply = 8 + value_bytes;
    std::string first;
    put(first, StoreOp::set, "/bench/0", value);
    load.send(0, first + bytes, reply);
    load.await_all();
  } else if (options.measure == "add") {
    put(bytes, StoreOp::add, "/bench/n", {}, 1);
    reply = 8;
  } else {
    put(bytes, StoreOp::check, "/bench/0");
    reply = 1;
  }
  const std::string one = bytes;
  for (std::size_t i = 1; i < options.depth; ++i) bytes += one;
  reply *= options.depth;
  requests *= options.depth;
  Latencies latencies;
  const auto begin = Clock::now();
  const auto end =
      begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.limit_s));
  for (std::size_t i = 0; i < options.clients; ++i) load.send(i, bytes, reply);
  auto now = begin;
  while (load.busy() > 0)
    load.poll(-1, [&](std::size_t client) {
      now = Clock::now();
      latencies.add(now - load.clients[client].sent);
      if (now < end) load.send(client, bytes, reply);
    });
  print_rate(double(latencies.size() * requests), seconds(now - begin), latencies);
}

/// How long after a SET its waiter hears of it.
void measure_wake(const Options& options) {
  Load load(options.port);
  load.connect(1 + options.clients);
  Latencies latencies;
  const auto begin = Clock::now();
  for (int turn = 0; seconds(Clock::now() - begin) < options.limit_s; ++turn) {
    const auto key = fmt::format("/wake/{}/{}", ::getpid(), turn);
    std::string wait;
    put(wait, StoreOp::wait, key);
    for (std::size_t i = 1; i <= options.clients; ++i) load.send(i, wait, 1);
    // That all waits are there before the key is: the server reads its clients in any order.
    std::string check;
    put(check, StoreOp::check, key);
    for (int i = 0; i < 2; ++i) {
      load.send(0, check, 1);
      while (load.clients[0].owed > 0) load.poll(-1, [](std::size_t) {});
    }
    std::string set;
    put(set, StoreOp::set, key, "1");
    const auto sent = Clock::now();
    load.send(0, set, 0);
    while (load.busy() > 0) load.poll(-1, [&](std::size_t) { latencies.add(Clock::now() - sent); });
  }
  print_rate(double(latencies.size()), seconds(Clock::now() - begin), latencies);
}

/// Gloo's full mesh: every rank sets its addresses, then waits for and gets each other rank's.
void measure_mesh(const Options& options) {
  const std::size_t n = options.clients;
  Load load(options.port);
  load.connect(n);
  const std::string record(136, 'a');
  struct Rank {
    std::size_t peer = 0;
    bool waiting = true;
  };
  std::vector<Rank> ranks(n);
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < n; ++i) keys.push_back(fmt::format("/default_pg/0//cpu//0/{}", i));
  Latencies latencies;
  std::string out;
  const auto ask = [&](std::size_t rank) {
    if (ranks[rank].peer == rank) ++ranks[rank].peer;
    if (ranks[rank].peer >= n) return;
    put(out, ranks[rank].waiting ? StoreOp::wait : StoreOp::get, keys[ranks[rank].peer]);
    load.send(rank, out, ranks[rank].waiting ? 1 : 8 + record.size());
  };
  const auto begin = Clock::now();
  for (std::size_t i = 0; i < n; ++i) {
    out.clear();
    put(out, StoreOp::set, keys[i], record);
    ask(i);
  }
  while (load.busy() > 0)
    load.poll(-1, [&](std::size_t i) {
      auto& rank = ranks[i];
      if (!rank.waiting) {
        latencies.add(Clock::now() - load.clients[i].sent);
        ++rank.peer;
      }
      rank.waiting = !rank.waiting;
      out.clear();
      ask(i);
    });
  print_rate(double(2 * n * (n - 1)), seconds(Clock::now() - begin), latencies);
}

/// NCCL's monitors: each client CHECKs once a second, evenly spread; a waiter is woken now and then meanwhile.
void measure_monitor(const Options& options) {
  Load load(options.port);
  load.connect(options.clients + 2);
  const std::size_t setter = options.clients;
  const std::size_t waiter = options.clients + 1;
  std::string check;
  put(check, StoreOp::check, "/exception_dump");
  Latencies checks;
  Latencies wakes;
  const auto pause = std::chrono::nanoseconds(1'000'000'000 / options.clients);
  const auto begin = Clock::now();
  auto next_check = begin;
  auto next_wake = begin;
  Clock::time_point set_at;
  std::size_t client = 0;
  int turn = 0;
  const auto answered = [&](std::size_t who) {
    if (who == waiter) {
      wakes.add(Clock::now() - set_at);
    } else {
      checks.add(Clock::now() - load.clients[who].sent);
    }
  };
  for (auto now = begin; seconds(now - begin) < options.limit_s; now = Clock::now()) {
    if (now >= next_check) {
      next_check += pause;
      if (load.clients[client].owed == 0) load.send(client, check, 1);
      client = (client + 1) % options.clients;
    }
    if (now >= next_wake && load.clients[waiter].owed == 0) {
      next_wake = now + std::chrono::milliseconds(5);
      const auto key = fmt::format("/monitor/{}/{}", ::getpid(), turn++);
      std::string bytes;
      put(bytes, StoreOp::wait, key);
      load.send(waiter, bytes, 1);
      bytes.clear();
      put(bytes, StoreOp::check, key);
      load.send(setter, bytes, 1);
      while (load.clients[setter].owed > 0)
        load.poll(-1, [&](std::size_t who) {
          if (who != setter) answered(who);
        });
      bytes.clear();
      put(bytes, StoreOp::set, key, "1");
      set_at = Clock::now();
      load.send(setter, bytes, 0);
    }
    load.poll(0, answered);
  }
  load.await_all();
  std::cout << fmt::format(
      "{{\"per_s\": {:.0f}, \"p50_us\": {:.1f}, \"p99_us\": {:.1f}, \"check_p50_us\": {:.1f}, "
      "\"check_p99_us\": {:.1f}, "
      "\"s\": {:.3f}}}\n",
      double(checks.size()) / options.limit_s, wakes.percentile_us(0.5), wakes.percentile_us(0.99),
      checks.percentile_us(0.5), checks.percentile_us(0.99), options.limit_s);
}

/// Connects as fast as it can; then every connection is used once. Stays until its input ends, so that the
/// server's memory can be looked at.
void measure_connections(const Options& options) {
  Load load(options.port);
  const auto begin = Clock::now();
  load.open(options.clients);
  const auto opened = Clock::now();
  for (std::size_t i = 0; i < options.clients; ++i) load.greet(i);
  load.await_all();
  const auto served = Clock::now();
  std::cout << fmt::format("{{\"connections\": {}, \"open_s\": {:.3f}, \"served_s\": {:.3f}}}",
                           options.clients, seconds(opened - begin), seconds(served - begin))
            << std::endl;
  std::cin.get();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("load for a store server");
  app.add_option("--port", options.port, "of the server, on 127.0.0.1")->required();
  app.add_option("--clients", options.clients, "connections, or ranks of the mesh");
  app.add_option("--depth", options.depth, "requests that each client sends before it reads the replies");
  app.add_option("--limit", options.limit_s, "seconds, where there is no other end");
  app.add_option("measure", options.measure)
      ->required()
      ->check(CLI::IsMember({"set", "get", "add", "check", "wake", "mesh", "monitor", "connections"}));
  CLI11_PARSE(app, argc, argv);
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  try {
    if (options.measure == "wake")
      measure_wake(options);
    else if (options.measure == "mesh")
      measure_mesh(options);
    else if (options.measure == "monitor")
      measure_monitor(options);
    else if (options.measure == "connections")
      measure_connections(options);
    else
      measure_request(options);
  } catch (const std::exception& error) {
    std::cerr << "store_load: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
