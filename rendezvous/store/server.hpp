// Serves one keyspace to PyTorch's TCPStore clients (and our own): one server for one round.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "base/error.hpp"
#include "rendezvous/store/engine.hpp"
#include "rendezvous/store/limits.hpp"
#include "rendezvous/store/listener.hpp"
#include "rendezvous/store/stall.hpp"

namespace muster::rendezvous {

struct StoreCounters {
  std::size_t connections = 0;  ///< open now
  std::uint64_t connections_total = 0;
  std::uint64_t requests_total = 0;
  std::uint64_t wakeups_total = 0;
  std::uint64_t refused_total = 0;  ///< connections closed for a bad request or a limit
  std::size_t keys = 0;
  std::size_t stored_bytes = 0;
  std::size_t buffered_bytes = 0;
};

/// Every call belongs to the executor's thread (a single-threaded io_context, or a strand). It never logs and
/// never ends by itself: a client that misbehaves is disconnected, everything else is kept until stop().
class StoreServer {
 public:
  using Notice = std::function<void(const std::string& sentence)>;

  /// `listener` is already listening: clients that connect before start() wait in its backlog.
  StoreServer(const boost::asio::any_io_executor& executor, boost::asio::ip::tcp::acceptor listener,
              StoreLimits limits = {});
  /// Stops.
  ~StoreServer();
  StoreServer(StoreServer&&) noexcept;
  StoreServer& operator=(StoreServer&&) noexcept;

  /// What an operator should read: bad clients (one line for each peer address and kind of reason), no descriptors left. Set it
  /// before start(). It must not call stop() or destroy the server.
  void on_notice(Notice notice);

  /// From now on whoever comes from another address is closed unheard, with one notice for each; loopback is always
  /// served, since only this machine can come from there. An empty set: clients of any address.
  void serve_only(std::set<boost::asio::ip::address> clients);

  enum class Accepting { at_once, later };
  /// Begins to serve. The only errors are those of making an epoll set (no descriptors, no memory).
  Result<void> start(Accepting accepting = Accepting::at_once);

  /// For one listening socket that serves store after store (see share_listener()): a connection belongs to
  /// the store that accepted it. The old store stops accepting when its round is over, and has taken in by
  /// then who had come before; the next one begins when its round does. Who comes in between waits in the
  /// backlog; who has gone again by then was a worker of the old round, and is not heard.
  void stop_accepting();
  Result<void> begin_accepting();

  /// Closes the listener and every connection. Nothing is called afterwards.
  void stop();

  boost::asio::ip::tcp::endpoint local_endpoint() const;
  StoreCounters counters() const;
  StoreDiagnosis diagnosis() const;

  /// The caller's measure of time: waits know how many periods have begun since they did.
  void next_period();
  /// Why the round does not get on, if a wait is `periods_long` or older, or if it is `late` and workers are
  /// missing. Cheap while all is well.
  std::optional<std::string> stall(const StoreRound& round, unsigned periods_long, bool late) const;
  /// That more workers joined than the round has: at this moment, or since it began and somebody has waited for
  /// `periods_long`. (A program that leaves its process group and makes another one joins twice.)
  std::optional<std::string> crowd(int world_size, unsigned periods_long) const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::rendezvous
