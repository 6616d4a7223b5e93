// Inside of the store server; see server.cpp for its shape.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "rendezvous/store/server.hpp"
#include "rendezvous/store/session.hpp"

namespace muster::rendezvous {

constexpr std::size_t store_read_bytes_max = 128UL << 10;
constexpr std::size_t store_events_at_once_max = 256;

class StoreServer::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(const boost::asio::any_io_executor& executor, boost::asio::ip::tcp::acceptor listener,
       StoreLimits limits)
      : limits_(limits),
        listener_(std::move(listener)),
        local_(listener_.local_endpoint()),
        watched_(executor),
        accept_timer_(executor),
        engine_(limits) {}

  void on_notice(Notice notice) { notice_ = std::move(notice); }
  void serve_only(std::set<boost::asio::ip::address> clients) { clients_ = std::move(clients); }
  Result<void> start(Accepting accepting);
  void stop_accepting();
  Result<void> begin_accepting();
  void stop();
  boost::asio::ip::tcp::endpoint local_endpoint() const { return local_; }
  StoreCounters counters() const;
  StoreDiagnosis diagnosis() const;
  void next_period() { engine_.next_period(); }
  std::optional<std::string> stall(const StoreRound& round, unsigned periods_long, bool late) const;
  std::optional<std::string> crowd(int world_size, unsigned periods_long) const;

 private:
  void arm();
  void turn();
  void serve(const epoll_event& event);

  enum class Newcomers { all, present };  ///< present: who has not gone again
  Result<void> watch_listener();
  bool accept_clients(Newcomers newcomers = Newcomers::all);
  bool serves(const boost::asio::ip::tcp::endpoint& peer) const;
  void adopt(UniqueFd fd, const boost::asio::ip::tcp::endpoint& peer);
  void pause_accepting(int error_number);

  /// Kinds of reasons to close a connection: a peer address has one line for each, since all workers of a host
  /// share it, and what a passing stranger did must not hide what a worker is refused. Whoever is no store client has
  /// one, whatever it sends.
  enum class Fault { foreign_address, no_room, no_client, over_limit, refused_request };

  // These return false if the session was closed, and gone.
  bool read(StoreSession& session);
  bool take(StoreSession& session, std::string_view bytes, std::size_t* used);
  bool take_one(StoreSession& session, std::string_view bytes, std::size_t* used);
  bool resume(StoreSession& session);
  static bool send_from(StoreOutput& output, int fd);
  bool send_replies(StoreSession& session);
  bool send_rest(StoreSession& session);
  bool settle(StoreSession& session);
  using HeldBy = std::size_t (*)(const StoreSession&);
  StoreSession& greediest(HeldBy held_by);
  StoreConnectionId refuse_greediest();
  bool make_room(std::string_view refusal);
  void refuse(StoreSession& session, Fault fault, const std::string& why);
  void close(StoreSession& session);

  void deliver_wakeups();
  StoreSession* find(StoreConnectionId id);
  void notice_peer(const boost::asio::ip::tcp::endpoint& peer, Fault fault, const std::string& what);

  StoreLimits limits_;
  boost::asio::ip::tcp::acceptor listener_;
  boost::asio::ip::tcp::endpoint local_;
  int epoll_ = -1;  ///< owned by watched_
  boost::asio::posix::stream_descriptor watched_;
  std::array<epoll_event, store_events_at_once_max> events_;
  std::span<const epoll_event> ready_;  ///< of events_, not served yet
  boost::asio::steady_timer accept_timer_;
  bool stopped_ = false;
  bool shortage_reported_ = false;
  Notice notice_;
  /// With the limit that was passed, if it was one.
  std::set<std::tuple<boost::asio::ip::address, Fault, std::string_view>> reported_;
  std::set<boost::asio::ip::address> clients_;  ///< bare; empty: any

  StoreEngine engine_;
  std::vector<std::unique_ptr<StoreSession>> sessions_;  ///< by slot
  StoreCounters counters_;

  // Of the request or client at hand, kept for their room.
  std::string scratch_ = std::string(store_read_bytes_max, '\0');
  StoreRequest request_;
  StoreOutput replies_;
  StoreWoken woken_;
  StoreWoken owed_wakeups_;
};

}  // namespace muster::rendezvous
