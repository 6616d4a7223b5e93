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

#include <boost/asio/post.hpp>
#include <cerrno>

#include "base/bare_address.hpp"
#include "base/endpoint.hpp"
#include "rendezvous/store/server_impl.hpp"

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;
using Clock = std::chrono::steady_clock;

/// Then the executor's other work has its chance, whatever is still to be done.
constexpr std::chrono::milliseconds turn_length{1};
/// That long a turn looks for the next request.
constexpr std::chrono::microseconds idle_look{10};
constexpr int accepts_per_turn_max = 256;
/// Of ended waits, beside each request, and in each turn without one: a fraction of a turn.
constexpr std::size_t keys_cleared_at_once = 500;
constexpr std::chrono::milliseconds accept_pause{100};
constexpr std::uint64_t listener_tag = ~std::uint64_t{0};

std::string text_of(const tcp::endpoint& endpoint) {
  auto address = endpoint.address();
  if (address.is_v6() && address.to_v6().is_v4_mapped()) address = bare(address);
  return Endpoint{address.to_string(), endpoint.port()}.text();
}

/// The peer has closed already, whatever it sent before.
bool has_gone(int fd) {
  pollfd asked{fd, POLLRDHUP, 0};
  return ::poll(&asked, 1, 0) == 1 && (asked.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

}  // namespace

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
  if (engine_.has_traces()) {  // the executor's other work comes first, and so do requests
    boost::asio::post(watched_.get_executor(), [self = shared_from_this()] {
      if (self->stopped_) return;
      self->turn();
      if (!self->stopped_) self->arm();
    });
    return;
  }
  watched_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                      [self = shared_from_this()](boost::system::error_code error) {
                        if (error || self->stopped_) return;
                        self->turn();
                        if (!self->stopped_) self->arm();
                      });
}

void StoreServer::Impl::turn() {
  // Again as long as there is something: under load the way back through Asio's own epoll set, three system
  // calls, would be half of what a request costs. Looks a moment longer than that, since to be woken takes
  // longer than most clients take to ask again. (No sched_yield meanwhile: a thread that has yielded to busy
  // workers waits for their time slice to end, one that sleeps is woken at once.)
  // What a turn has no time for is the first thing in the next one: who comes late in the set is not starved.
  auto last_served = Clock::now();
  const auto end = last_served + turn_length;
  while (!stopped_) {
    if (engine_.has_traces()) engine_.clear_up(keys_cleared_at_once);
    if (ready_.empty()) {
      const int count = ::epoll_wait(epoll_, events_.data(), static_cast<int>(events_.size()), 0);
      if (count < 0) return;
      ready_ = {events_.data(), static_cast<std::size_t>(count)};
    }
    const bool idle = ready_.empty();
    if (!idle) {
      const auto event = ready_.front();
      ready_ = ready_.subspan(1);
      serve(event);
      deliver_wakeups();
    }
    const auto now = Clock::now();
    if (now > end || (idle && now - last_served > idle_look)) return;
    if (!idle) last_served = now;
  }
}

void StoreServer::Impl::serve(const epoll_event& event) {
  if (event.data.u64 == listener_tag) return (void)(listener_.is_open() && accept_clients());
  auto* session = find(event.data.u64);
  if (!session) return;  // closed since
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
    if (!serves(peer)) {
      ++counters_.refused_total;
      notice_peer(peer, Fault::foreign_address,
                  "no node of this round has that address (if one has, behind an address translation: "
                  "--rdzv-conf worker_store=rank0)");
      continue;
    }
    if (counters_.connections >= limits_.connections_max) {
      ++counters_.refused_total;
      notice_peer(peer, Fault::no_room,
                  fmt::format("{} connections are open, no more are allowed (connections_max)",
                              limits_.connections_max));
      continue;
    }
    adopt(std::move(fd), peer);
  }
  return true;
}

bool StoreServer::Impl::serves(const tcp::endpoint& peer) const {
  const auto address = bare(peer.address());
  return clients_.empty() || address.is_loopback() || clients_.contains(address);
}

void StoreServer::Impl::adopt(UniqueFd fd, const tcp::endpoint& peer) {
  const auto id = engine_.connect();
  epoll_event event{.events = EPOLLIN, .data = {.u64 = id}};
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd.get(), &event) != 0) {
    const int error = errno;
    engine_.disconnect(id, woken_);
    notice_peer(peer, Fault::no_room, "epoll_ctl: " + errno_text(error));
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

void StoreServer::Impl::deliver_wakeups() {
  // Grows while it is walked: a woken client may have held requests that wake others.
  for (std::size_t i = 0; i < owed_wakeups_.size(); ++i) {
    auto* session = find(owed_wakeups_[i]);
    if (!session) continue;
    ++counters_.wakeups_total;
    replies_.clear();
    replies_.own().push_back(static_cast<char>(reply_stop_waiting));
    if (send_replies(*session) && resume(*session)) settle(*session);
  }
  owed_wakeups_.clear();
}

StoreSession* StoreServer::Impl::find(StoreConnectionId id) {
  if (slot_of(id) >= sessions_.size()) return nullptr;
  auto* session = sessions_[slot_of(id)].get();
  return session && session->id == id ? session : nullptr;
}

void StoreServer::Impl::notice_peer(const tcp::endpoint& peer, Fault fault, const std::string& what) {
  if (!notice_ || reported_.size() > limits_.reported_peers_max) return;
  const auto limit = fault == Fault::no_client ? "" : limit_named_in(what);
  if (!reported_.emplace(peer.address(), fault, limit).second) return;
  const bool last = reported_.size() > limits_.reported_peers_max;
  notice_(fmt::format("worker store {}: the connection from {} was closed: {}; {}", text_of(local_),
                      text_of(peer), what,
                      last ? "no more closed connections are reported"
                           : "other clients are served on, this is not reported again of this address"));
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

std::optional<std::string> StoreServer::Impl::crowd(int world_size, unsigned periods_long) const {
  const auto counted = engine_.joined().value_or(0);
  if (counted <= world_size) return std::nullopt;
  if (engine_.periods_of_oldest_wait() >= periods_long) return describe_crowd(counted, world_size);
  return describe_crowd(joined_now(diagnosis()), world_size);
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
void StoreServer::serve_only(std::set<boost::asio::ip::address> clients) {
  impl_->serve_only(std::move(clients));
}
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
std::optional<std::string> StoreServer::crowd(int world_size, unsigned periods_long) const {
  return impl_->crowd(world_size, periods_long);
}

}  // namespace muster::rendezvous
