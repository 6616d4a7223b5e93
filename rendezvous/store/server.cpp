// Why not one asynchronous Asio operation for each connection: a store for thousands of workers does two
// requests for each pair of ranks, and what counts is the system calls beside recv and send, and the memory
// of an idle client. Here the clients' sockets live in an epoll set of their own, and Asio watches that one
// descriptor: no operation, handler or buffer for a client that is silent, and accept4 makes sockets that are
// close-on-exec from the start.
#include "rendezvous/store/server.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <set>

#include "base/endpoint.hpp"
#include "rendezvous/store/session.hpp"

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;

constexpr int events_at_once_max = 256;
/// Then the executor's other work has its chance.
constexpr int events_per_turn_max = 512;
constexpr int accepts_per_turn_max = 256;
constexpr std::size_t read_bytes_max = 128UL << 10;
/// Scratch strings that grew beyond this in one request are given back.
constexpr std::size_t scratch_kept_bytes_max = 1UL << 20;
constexpr std::chrono::milliseconds accept_pause{100};
constexpr std::uint64_t listener_tag = ~std::uint64_t{0};

std::string text_of(const tcp::endpoint& endpoint) {
  auto address = endpoint.address();
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    address = boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, address.to_v6());
  return Endpoint{address.to_string(), endpoint.port()}.text();
}

/// The peer has closed already, whatever it sent before.
bool has_gone(int fd) {
  pollfd asked{fd, POLLRDHUP, 0};
  return ::poll(&asked, 1, 0) == 1 && (asked.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

}  // namespace

class StoreServer::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(const boost::asio::any_io_executor& executor, tcp::acceptor listener, StoreLimits limits)
      : limits_(limits),
        listener_(std::move(listener)),
        local_(listener_.local_endpoint()),
        watched_(executor),
        accept_timer_(executor),
        engine_(limits) {}

  void on_notice(Notice notice) { notice_ = std::move(notice); }
  Result<void> start(Accepting accepting);
  void stop_accepting();
  Result<void> begin_accepting();
  void stop();
  tcp::endpoint local_endpoint() const { return local_; }
  StoreCounters counters() const;
  StoreDiagnosis diagnosis() const;
  void next_period() { engine_.next_period(); }
  std::optional<std::string> stall(const StoreRound& round, unsigned periods_long, bool late) const;

 private:
  void arm();
  void turn();
  void serve(const epoll_event& event);

  enum class Newcomers { all, present };  ///< present: who has not gone again
  Result<void> watch_listener();
  bool accept_clients(Newcomers newcomers = Newcomers::all);
  void adopt(UniqueFd fd, const tcp::endpoint& peer);
  void pause_accepting(int error_number);

  // These return false if the session was closed, and gone.
  bool read(StoreSession& session);
  bool take(StoreSession& session, std::string_view bytes, std::size_t* used);
  bool take_one(StoreSession& session, std::string_view bytes, std::size_t* used);
  bool resume(StoreSession& session);
  bool send_replies(StoreSession& session);
  bool send_rest(StoreSession& session);
  bool settle(StoreSession& session);
  void refuse(StoreSession& session, const std::string& why);
  void close(StoreSession& session);

  void deliver_wakeups();
  StoreSession* find(StoreConnectionId id);
  void notice_peer(const tcp::endpoint& peer, const std::string& what);

  StoreLimits limits_;
  tcp::acceptor listener_;
  tcp::endpoint local_;
  int epoll_ = -1;  ///< owned by watched_
  boost::asio::posix::stream_descriptor watched_;
  boost::asio::steady_timer accept_timer_;
  bool stopped_ = false;
  bool shortage_reported_ = false;
  Notice notice_;
  std::set<boost::asio::ip::address> reported_peers_;

  StoreEngine engine_;
  std::vector<std::unique_ptr<StoreSession>> sessions_;  ///< by slot
  StoreCounters counters_;

  // Of the request or client at hand, kept for their room.
  std::string scratch_ = std::string(read_bytes_max, '\0');
  StoreRequest request_;
  std::string replies_;
  StoreWoken woken_;
  StoreWoken owed_wakeups_;
};

Result<void> StoreServer::Impl::start(Accepting accepting) {
  boost::system::error_code error;
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  if (epoll_ < 0) return errno_error("worker store: epoll_create1", errno);
  watched_.assign(epoll_, error);
  if (error) {
    ::close(epoll_);
    return errno_error("worker store: watching its epoll set", error.value());
  }
  arm();
  return accepting == Accepting::at_once ? watch_listener() : Result<void>();
}

Result<void> StoreServer::Impl::begin_accepting() {
  while (accept_clients(Newcomers::present)) {
  }
  return watch_listener();
}

Result<void> StoreServer::Impl::watch_listener() {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = listener_tag}};
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, listener_.native_handle(), &event) != 0)
    return errno_error("worker store: epoll_ctl", errno);
  return {};
}

void StoreServer::Impl::stop_accepting() {
  if (stopped_ || !listener_.is_open()) return;
  while (accept_clients()) {
  }
  accept_timer_.cancel();
  // By hand: while others share the socket, epoll would go on reporting it.
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, listener_.native_handle(), nullptr);
  boost::system::error_code ignored;
  listener_.close(ignored);
}

void StoreServer::Impl::stop() {
  if (std::exchange(stopped_, true)) return;
  // Errors of closing a listener or an epoll set leave nothing to do.
  boost::system::error_code ignored;
  accept_timer_.cancel();
  listener_.close(ignored);
  watched_.close(ignored);
  sessions_.clear();
  counters_.connections = 0;
  counters_.buffered_bytes = 0;
}

void StoreServer::Impl::arm() {
  watched_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                      [self = shared_from_this()](boost::system::error_code error) {
                        if (error || self->stopped_) return;
                        self->turn();
                        if (!self->stopped_) self->arm();
                      });
}

void StoreServer::Impl::turn() {
  // Again as long as there is something: under load the way back through Asio's own epoll set, three system
  // calls, would be half of what a request costs.
  epoll_event events[events_at_once_max];
  int served = 0;
  for (int count = 1; count > 0 && served < events_per_turn_max && !stopped_; served += count) {
    count = ::epoll_wait(epoll_, events, events_at_once_max, 0);
    for (int i = 0; i < count; ++i) {
      serve(events[i]);
      deliver_wakeups();
    }
  }
}

void StoreServer::Impl::serve(const epoll_event& event) {
  if (event.data.u64 == listener_tag) return (void)accept_clients();
  auto* session = find(event.data.u64);
  if (!session) return;  // closed earlier in this turn
  if (event.events & EPOLLOUT && !send_rest(*session)) return;
  if (event.events & EPOLLIN && !session->draining && !session->held) {
    read(*session);
  } else if (event.events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP)) {
    close(*session);
  }
}

/// True: there may be more.
bool StoreServer::Impl::accept_clients(Newcomers newcomers) {
  for (int i = 0; i < accepts_per_turn_max; ++i) {
    tcp::endpoint peer;
    auto length = static_cast<socklen_t>(peer.capacity());
    UniqueFd fd(::accept4(listener_.native_handle(), peer.data(), &length, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd) {
      if (errno == EAGAIN) return false;
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        pause_accepting(errno);
        return false;
      }
      continue;  // that client is gone already, the next one may be fine
    }
    peer.resize(length);
    if (newcomers == Newcomers::present && has_gone(fd.get())) continue;
    if (counters_.connections >= limits_.connections_max) {
      ++counters_.refused_total;
      notice_peer(peer, fmt::format("{} connections are open, no more are allowed (connections_max)",
                                    limits_.connections_max));
      continue;
    }
    adopt(std::move(fd), peer);
  }
  return true;
}

void StoreServer::Impl::adopt(UniqueFd fd, const tcp::endpoint& peer) {
  const auto id = engine_.connect();
  epoll_event event{.events = EPOLLIN, .data = {.u64 = id}};
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd.get(), &event) != 0) {
    const int error = errno;
    engine_.disconnect(id, woken_);
    notice_peer(peer, "epoll_ctl: " + errno_text(error));
    return;
  }
  auto session = std::make_unique<StoreSession>();
  session->id = id;
  session->fd = std::move(fd);
  session->interest = event.events;
  session->peer = peer;
  if (slot_of(id) >= sessions_.size()) sessions_.resize(slot_of(id) + 1);
  sessions_[slot_of(id)] = std::move(session);
  ++counters_.connections;
  ++counters_.connections_total;
}

void StoreServer::Impl::pause_accepting(int error_number) {
  if (!std::exchange(shortage_reported_, true) && notice_)
    notice_(
        fmt::format("worker store {}: accepting a client: {}; clients wait in the backlog until "
                    "descriptors or memory are free; raise the limit of open files",
                    text_of(local_), errno_text(error_number)));
  epoll_event event{.events = 0, .data = {.u64 = listener_tag}};
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, listener_.native_handle(), &event);
  // No event tells when other parts of the process free a descriptor.
  accept_timer_.expires_after(accept_pause);
  accept_timer_.async_wait([self = shared_from_this()](boost::system::error_code error) {
    if (error || self->stopped_ || !self->listener_.is_open()) return;
    epoll_event again{.events = EPOLLIN, .data = {.u64 = listener_tag}};
    ::epoll_ctl(self->epoll_, EPOLL_CTL_MOD, self->listener_.native_handle(), &again);
  });
}

bool StoreServer::Impl::read(StoreSession& session) {
  const ssize_t count = ::recv(session.fd.get(), scratch_.data(), scratch_.size(), 0);
  if (count < 0) {
    if (errno == EAGAIN || errno == EINTR) return true;
    close(session);
    return false;
  }
  if (count == 0) {
    session.draining = true;
    return settle(session);
  }
  const std::string_view fresh(scratch_.data(), static_cast<std::size_t>(count));
  std::size_t used = 0;
  if (session.input.empty()) {
    if (!take(session, fresh, &used)) return false;
    session.input.assign(fresh.substr(used));
  } else {
    session.input.append(fresh);
    if (!take(session, session.input, &used)) return false;
    session.input.erase(0, used);
  }
  return settle(session);
}

bool StoreServer::Impl::take(StoreSession& session, std::string_view bytes, std::size_t* used) {
  session.held = false;
  if (session.dialect == StoreDialect::undecided) {
    const auto found = detect_dialect(bytes, &session.dialect);
    if (found.state == ScanResult::State::bad) refuse(session, found.why);
    if (found.state != ScanResult::State::whole) return found.state == ScanResult::State::partial;
  }
  replies_.clear();
  std::size_t before;
  do {
    before = *used;
    if (session.unsent_bytes() + replies_.size() > limits_.output_pause_bytes) {
      if (!send_replies(session)) return false;
      if (session.unsent_bytes() > limits_.output_pause_bytes) {
        // It sends faster than it reads the replies: on once they are out.
        session.held = *used < bytes.size();
        return true;
      }
    }
    if (!take_one(session, bytes.substr(*used), used)) return false;
  } while (*used > before);
  return send_replies(session);
}

bool StoreServer::Impl::take_one(StoreSession& session, std::string_view bytes, std::size_t* used) {
  auto& scanner = session.scanner;
  auto found = scanner.scan(bytes, session.dialect, limits_);
  if (found.state == ScanResult::State::partial) return true;
  if (found.state == ScanResult::State::bad) {
    if (send_replies(session)) refuse(session, found.why);
    return false;
  }
  if (engine_.waiting(session.id) && scanner.op() != StoreOp::cancel_wait) {
    if (session.dialect == StoreDialect::a) {
      // Such a client gave the wait up without a word: a late answer would put it out of step.
      engine_.drop_wait(session.id);
    } else {
      session.held = true;
      return true;
    }
  }
  parse_request(scanner.op(), bytes.substr(0, scanner.size()), request_);
  *used += scanner.size();
  scanner = StoreScanner();
  ++counters_.requests_total;
  woken_.clear();
  const auto refusal = engine_.handle(session.id, request_, replies_, woken_);
  for (const auto id : woken_) {
    if (id == session.id) {
      replies_.push_back(static_cast<char>(reply_stop_waiting));
    } else {
      owed_wakeups_.push_back(id);
    }
  }
  if (!refusal) return true;
  if (send_replies(session)) refuse(session, *refusal);
  return false;
}

bool StoreServer::Impl::resume(StoreSession& session) {
  if (!session.held) return true;
  std::size_t used = 0;
  if (!take(session, session.input, &used)) return false;
  session.input.erase(0, used);
  return settle(session);
}

bool StoreServer::Impl::send_replies(StoreSession& session) {
  std::size_t sent = 0;
  if (session.output.empty() && !replies_.empty()) {
    const ssize_t count = ::send(session.fd.get(), replies_.data(), replies_.size(), MSG_NOSIGNAL);
    if (count < 0 && errno != EAGAIN && errno != EINTR) {
      close(session);
      return false;
    }
    if (count > 0) sent = static_cast<std::size_t>(count);
  }
  session.output.append(replies_, sent);
  replies_.clear();
  return true;
}

bool StoreServer::Impl::send_rest(StoreSession& session) {
  const ssize_t count =
      ::send(session.fd.get(), session.output.data() + session.sent, session.unsent_bytes(), MSG_NOSIGNAL);
  if (count < 0) {
    if (errno == EAGAIN || errno == EINTR) return true;
    close(session);
    return false;
  }
  session.sent += static_cast<std::size_t>(count);
  if (session.unsent_bytes() > 0) return true;
  session.output.clear();
  session.sent = 0;
  return resume(session) && settle(session);
}

/// After anything was done for a session: gives back room, keeps the books, asks epoll for the right events.
bool StoreServer::Impl::settle(StoreSession& session) {
  if (session.draining && session.output.empty()) {
    close(session);
    return false;
  }
  if (session.input.empty() && session.input.capacity() > 64) std::string().swap(session.input);
  if (session.output.empty() && session.output.capacity() > 64) std::string().swap(session.output);
  if (replies_.capacity() > scratch_kept_bytes_max) std::string().swap(replies_);
  const std::size_t buffered = session.input.capacity() + session.output.capacity();
  counters_.buffered_bytes += buffered - session.buffered_bytes;
  session.buffered_bytes = buffered;
  if (counters_.buffered_bytes > limits_.buffered_bytes_max) {
    refuse(session,
           fmt::format("unfinished requests and unsent replies of all clients take more than {} bytes "
                       "(buffered_bytes_max)",
                       limits_.buffered_bytes_max));
    return false;
  }
  const bool reads = !session.held && !session.draining;
  const bool writes = !session.output.empty();
  const std::uint32_t wanted =
      (reads ? EPOLLIN : 0U) | (writes ? EPOLLOUT : 0U) | (session.held && !writes ? EPOLLRDHUP : 0U);
  if (wanted == session.interest) return true;
  epoll_event event{.events = wanted, .data = {.u64 = session.id}};
  if (::epoll_ctl(epoll_, EPOLL_CTL_MOD, session.fd.get(), &event) != 0) {
    refuse(session, "epoll_ctl: " + errno_text(errno));
    return false;
  }
  session.interest = wanted;
  return true;
}

void StoreServer::Impl::refuse(StoreSession& session, const std::string& why) {
  // The notice first: who sees the connection close can rely on its having been said why.
  ++counters_.refused_total;
  notice_peer(session.peer, why);
  close(session);
}

void StoreServer::Impl::close(StoreSession& session) {
  // By hand: a child that is just being started may hold the socket open for a moment, and epoll with it.
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, session.fd.get(), nullptr);
  counters_.buffered_bytes -= session.buffered_bytes;
  --counters_.connections;
  engine_.disconnect(session.id, owed_wakeups_);
  sessions_[slot_of(session.id)].reset();
}

void StoreServer::Impl::deliver_wakeups() {
  // Grows while it is walked: a woken client may have held requests that wake others.
  for (std::size_t i = 0; i < owed_wakeups_.size(); ++i) {
    auto* session = find(owed_wakeups_[i]);
    if (!session) continue;
    ++counters_.wakeups_total;
    replies_.assign(1, static_cast<char>(reply_stop_waiting));
    if (send_replies(*session) && resume(*session)) settle(*session);
  }
  owed_wakeups_.clear();
}

StoreSession* StoreServer::Impl::find(StoreConnectionId id) {
  if (slot_of(id) >= sessions_.size()) return nullptr;
  auto* session = sessions_[slot_of(id)].get();
  return session && session->id == id ? session : nullptr;
}

void StoreServer::Impl::notice_peer(const tcp::endpoint& peer, const std::string& what) {
  if (!notice_ || reported_peers_.size() > limits_.reported_peers_max) return;
  if (!reported_peers_.insert(peer.address()).second) return;
  const bool last = reported_peers_.size() > limits_.reported_peers_max;
  notice_(fmt::format("worker store {}: the connection from {} was closed: {}; {}", text_of(local_),
                      text_of(peer), what,
                      last ? "no more addresses are reported"
                           : "other clients are served on, this address is not reported again"));
}

StoreCounters StoreServer::Impl::counters() const {
  auto counters = counters_;
  counters.keys = engine_.keys();
  counters.stored_bytes = engine_.stored_bytes();
  return counters;
}

StoreDiagnosis StoreServer::Impl::diagnosis() const {
  auto diagnosis = engine_.diagnosis();
  for (auto& connection : diagnosis.connections)
    if (const auto& session = sessions_[slot_of(connection.id)]) connection.peer = text_of(session->peer);
  return diagnosis;
}

std::optional<std::string> StoreServer::Impl::stall(const StoreRound& round, unsigned periods_long,
                                                    bool late) const {
  const bool somebody_waits = engine_.periods_of_oldest_wait() >= periods_long;
  const bool somebody_is_missing = late && engine_.joined().value_or(round.world_size) < round.world_size;
  if (!somebody_waits && !somebody_is_missing) return std::nullopt;
  StallView view;
  view.diagnosis = diagnosis();
  view.own_address = local_.address().to_string();
  view.periods_long = periods_long;
  view.late = late;
  return describe_stall(view, round);
}

StoreServer::StoreServer(const boost::asio::any_io_executor& executor, tcp::acceptor listener,
                         StoreLimits limits)
    : impl_(std::make_shared<Impl>(executor, std::move(listener), limits)) {}
StoreServer::~StoreServer() {
  if (impl_) impl_->stop();
}
StoreServer::StoreServer(StoreServer&&) noexcept = default;
StoreServer& StoreServer::operator=(StoreServer&& other) noexcept {
  if (impl_ && impl_ != other.impl_) impl_->stop();
  impl_ = std::move(other.impl_);
  return *this;
}
void StoreServer::on_notice(Notice notice) { impl_->on_notice(std::move(notice)); }
Result<void> StoreServer::start(Accepting accepting) { return impl_->start(accepting); }
void StoreServer::stop_accepting() { impl_->stop_accepting(); }
Result<void> StoreServer::begin_accepting() { return impl_->begin_accepting(); }
void StoreServer::stop() { impl_->stop(); }
tcp::endpoint StoreServer::local_endpoint() const { return impl_->local_endpoint(); }
StoreCounters StoreServer::counters() const { return impl_->counters(); }
StoreDiagnosis StoreServer::diagnosis() const { return impl_->diagnosis(); }
void StoreServer::next_period() { impl_->next_period(); }
std::optional<std::string> StoreServer::stall(const StoreRound& round, unsigned periods_long,
                                              bool late) const {
  return impl_->stall(round, periods_long, late);
}

}  // namespace muster::rendezvous
