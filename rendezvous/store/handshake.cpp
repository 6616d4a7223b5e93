#include "rendezvous/store/handshake.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

#include "rendezvous/store/wire.hpp"

namespace muster::rendezvous {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds first_pause = 10ms;
constexpr std::chrono::milliseconds longest_pause = 1s;
/// Of one greeting. A server that thousands of workers come to at once may take seconds.
constexpr std::chrono::milliseconds greeting_timeout = 30s;

constexpr int cancels_in_greeting = 4;

struct Greeting {
  std::string request;
  std::string reply;  ///< what must come back; empty: anything
  std::size_t reply_bytes = 0;
};

Greeting greeting_of(StoreGreeting kind) {
  Greeting greeting;
  StoreRequest request;
  const auto add = [&](StoreDialect dialect, StoreOp op) {
    request.op = op;
    append_request(dialect, request, greeting.request);
  };
  if (kind == StoreGreeting::a) {
    add(StoreDialect::a, StoreOp::num_keys);
    greeting.reply_bytes = sizeof(std::int64_t);
    return greeting;
  }
  add(StoreDialect::c, StoreOp::validate);
  if (kind == StoreGreeting::c_with_ping) {
    request.number = ping_nonce();
    add(StoreDialect::c, StoreOp::ping);
    wire::put(greeting.reply, ping_nonce());
  } else {
    for (int i = 0; i < cancels_in_greeting; ++i) {
      add(StoreDialect::c, StoreOp::cancel_wait);
      wire::put_u8(greeting.reply, reply_wait_canceled);
    }
  }
  greeting.reply_bytes = greeting.reply.size();
  return greeting;
}

struct Attempt {
  StoreSocket socket;   ///< set on success
  std::string why;      ///< of a failure
  bool closed = false;  ///< the server took the connection and closed it: another greeting may do
};

Attempt attempt(const Endpoint& server, StoreGreeting kind, Clock::time_point deadline) {
  const auto greeting = greeting_of(kind);
  auto connected = StoreSocket::connect(server, deadline);
  if (!connected) return {{}, connected.error().why, false};
  auto& socket = *connected;
  if (const auto sent = socket.send_all(greeting.request, deadline); !sent)
    return {{}, sent.error().sentence(), true};
  std::string reply;
  while (reply.size() < greeting.reply_bytes) {
    const auto received = socket.receive(reply, deadline);
    if (!received) return {{}, received.error().sentence(), false};
    if (*received == StoreSocket::Received::timeout) return {{}, "it accepts but does not answer", false};
    if (*received == StoreSocket::Received::closed) return {{}, "it closes the connection", true};
  }
  if (reply.size() != greeting.reply_bytes || (!greeting.reply.empty() && reply != greeting.reply))
    return {{}, "it does not answer as a store does", false};
  return {std::move(socket), "", false};
}

std::vector<StoreGreeting> greetings_for(StoreDialect dialect) {
  switch (dialect) {
    case StoreDialect::c:
      return {StoreGreeting::c_with_ping, StoreGreeting::c_without_ping};
    case StoreDialect::a:
      return {StoreGreeting::a};
    case StoreDialect::undecided:
      break;
  }
  return {StoreGreeting::c_with_ping, StoreGreeting::c_without_ping, StoreGreeting::a};
}

}  // namespace

std::uint32_t ping_nonce() { return static_cast<std::uint32_t>(::getpid()) | ping_nonce_flag; }

StoreGreeted greet_store(const Endpoint& server, StoreDialect dialect, StoreGreeting only,
                         const StoreDeadline& deadline) {
  const auto greetings =
      only == StoreGreeting::none ? greetings_for(dialect) : std::vector<StoreGreeting>{only};
  std::mt19937 random{std::random_device{}()};
  std::uniform_real_distribution<double> jitter(0.5, 1.5);
  auto pause = first_pause;
  std::string why;
  do {
    for (const auto kind : greetings) {
      auto result = attempt(server, kind, std::min(deadline.at, Clock::now() + greeting_timeout));
      if (result.socket) return {std::move(result.socket), kind};
      why = std::move(result.why);
      if (!result.closed) break;
    }
    // A server that is not there yet gives no event to wait for.
    const auto wanted = std::chrono::duration_cast<Clock::duration>(pause * jitter(random));
    std::this_thread::sleep_until(std::min(deadline.at, Clock::now() + wanted));
    pause = std::min(pause * 2, longest_pause);
  } while (Clock::now() < deadline.at);
  throw StoreTimeout(fmt::format("worker store {}: no store answered within {}ms; the last try: {}",
                                 server.text(), deadline.span.count(), why));
}

}  // namespace muster::rendezvous
