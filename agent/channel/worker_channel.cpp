#include "agent/channel/worker_channel.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <random>

namespace muster::agent {
namespace {

namespace asio = boost::asio;
using Protocol = asio::local::stream_protocol;

/// Enough for a reconnect of each worker while its dead connection has not been noticed yet.
constexpr std::size_t kSessionsPerWorker = 4;
constexpr std::size_t kSpareSessions = 16;
/// Without a descriptor for the next connection, trying at once would be trying without end.
constexpr auto kPauseAfterError = std::chrono::seconds(1);
/// Of 1 KiB each; more than a socket of the usual size holds, and no flood keeps the agent from its other work.
constexpr int kReadsInOneGo = 256;

std::string fresh_name() {
  std::random_device random;
  return fmt::format("@muster-{}-{:08x}", ::getpid(), random());
}

/// The abstract namespace knows no permissions, so who connects is looked at.
std::optional<::ucred> peer_of(Protocol::socket& socket) {
  ::ucred peer{};
  ::socklen_t size = sizeof peer;
  if (::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  return peer;
}

bool of_our_user(Protocol::socket& socket) {
  const auto peer = peer_of(socket);
  return peer && (peer->uid == ::geteuid() || peer->uid == 0);
}

}  // namespace

class WorkerChannel::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Protocol::socket socket, WorkerChannel& channel) : socket_(std::move(socket)), channel_(&channel) {}

  /// Nothing is read ahead of its turn: whoever calls hear() gets all that has come.
  void listen() {
    socket_.async_wait(Protocol::socket::wait_read, [self = shared_from_this()](const auto& error) {
      if (!self->channel_) return;
      if (error)
        self->channel_->ended(self);
      else if (self->hear())
        self->listen();
    });
  }

  /// False once the session is over.
  bool hear() {
    const bool goes_on = take_what_came();
    if (!goes_on && channel_) channel_->ended(shared_from_this());
    return goes_on;
  }

  void ask_to_save(Duration grace) {
    if (!request_.empty()) return;  // asked once already
    request_ = worker_line(SaveLine{std::chrono::duration_cast<std::chrono::milliseconds>(grace)});
    // A failed write is followed by a failed read, which ends the session.
    asio::async_write(socket_, asio::buffer(request_),
                      [self = shared_from_this()](const auto&, std::size_t) {});
  }

  /// The channel calls nothing of it afterwards, nor it anything of the channel.
  void close() {
    channel_ = nullptr;
    boost::system::error_code ignored;  // it is over either way
    socket_.close(ignored);
  }

  pid_t peer_pid() {
    const auto peer = peer_of(socket_);
    return peer ? peer->pid : 0;
  }

  std::optional<int> local_rank;  ///< once it said hello

 private:
  bool take_what_came() {
    for (int count = 0; channel_ && count < kReadsInOneGo; ++count) {
      const auto size = ::recv(socket_.native_handle(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) return errno == EAGAIN;
      if (size == 0 || !take({buffer_.data(), static_cast<std::size_t>(size)})) return false;
    }
    return channel_ != nullptr;
  }

  bool take(std::string_view bytes) {
    const auto lines = reader_.put(bytes);
    if (!lines) return false;
    for (const WorkerLine& line : *lines)
      if (!channel_ || !channel_->take(shared_from_this(), line)) return false;
    return true;
  }

  Protocol::socket socket_;
  WorkerChannel* channel_;
  WorkerLineReader reader_;
  std::array<char, 1024> buffer_;
  std::string request_;
};

Result<std::unique_ptr<WorkerChannel>> WorkerChannel::open(asio::any_io_executor executor, Emit emit) {
  const std::string name = fresh_name();
  Acceptor acceptor(executor);
  boost::system::error_code error;
  acceptor.open(Protocol(), error);
  if (!error) acceptor.bind(Protocol::endpoint('\0' + name.substr(1)), error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (!error) acceptor.non_blocking(true, error);
  if (error)
    return errno_error("the channel to workers, " + name, error.value(), "workers cannot be asked to save");
  return std::unique_ptr<WorkerChannel>(new WorkerChannel(std::move(acceptor), name, std::move(emit)));
}

WorkerChannel::WorkerChannel(Acceptor acceptor, std::string name, Emit emit)
    : acceptor_(std::move(acceptor)),
      pause_(acceptor_.get_executor()),
      name_(std::move(name)),
      emit_(std::move(emit)) {
  accept();
}

WorkerChannel::~WorkerChannel() {
  for (const auto& session : sessions_) session->close();
}

void WorkerChannel::accept() {
  acceptor_.async_wait(Acceptor::wait_read,
                       [this, life = std::weak_ptr(life_)](const boost::system::error_code& error) {
                         if (life.expired() || error == asio::error::operation_aborted) return;
                         if (!let_in()) return accept_later();
                         accept();
                       });
}

void WorkerChannel::accept_later() {
  pause_.expires_after(kPauseAfterError);
  pause_.async_wait([this, life = std::weak_ptr(life_)](const boost::system::error_code& error) {
    if (!life.expired() && !error) accept();
  });
}

/// Those who wait at the door. False: somebody has to wait on, for want of descriptors or memory.
bool WorkerChannel::let_in() {
  const std::size_t limit = kSpareSessions + kSessionsPerWorker * static_cast<std::size_t>(local_workers_);
  for (int count = 0; count < asio::socket_base::max_listen_connections; ++count) {
    Protocol::socket socket(acceptor_.get_executor());
    boost::system::error_code error;
    acceptor_.accept(socket, error);
    if (error) return error == asio::error::would_block;
    if (!of_our_user(socket) || sessions_.size() >= limit) continue;
    const auto session = std::make_shared<Session>(std::move(socket), *this);
    sessions_.insert(session);
    session->listen();
  }
  return true;
}

void WorkerChannel::start_round(int round, int local_workers, LocalRankOf who) {
  for (const auto& session : sessions_) session->close();
  sessions_.clear();
  by_local_rank_.clear();
  round_ = round;
  local_workers_ = local_workers;
  who_ = std::move(who);
}

bool WorkerChannel::take(const std::shared_ptr<Session>& session, const WorkerLine& line) {
  if (const auto* hello = std::get_if<HelloLine>(&line)) {
    if (session->local_rank || hello->version != kWorkerLinesVersion || hello->round != round_ ||
        hello->local_rank < 0 || hello->local_rank >= local_workers_)
      return false;
    const auto local_rank = who_ ? who_(session->peer_pid()) : hello->local_rank;
    if (!local_rank || *local_rank < 0 || *local_rank >= local_workers_) return false;
    greet(session, *local_rank);
    return true;
  }
  if (!session->local_rank || by_local_rank_[*session->local_rank] != session) return false;
  if (const auto* progress = std::get_if<ProgressLine>(&line))
    emit_(WorkerProgress{*session->local_rank, progress->step});
  else if (const auto* safe = std::get_if<SafeLine>(&line))
    emit_(WorkerSafe{*session->local_rank, safe->step});
  else if (std::holds_alternative<DoneLine>(line))
    emit_(WorkerDone{*session->local_rank});
  return true;
}

void WorkerChannel::greet(const std::shared_ptr<Session>& session, int local_rank) {
  session->local_rank = local_rank;
  by_local_rank_[local_rank] = session;
  emit_(WorkerListens{local_rank});
}

void WorkerChannel::ended(const std::shared_ptr<Session>& session) {
  session->close();
  sessions_.erase(session);
  if (!session->local_rank) return;
  const auto newest = by_local_rank_.find(*session->local_rank);
  if (newest == by_local_rank_.end() || newest->second != session) return;
  by_local_rank_.erase(newest);
  emit_(WorkerDeaf{*session->local_rank});
}

void WorkerChannel::ask_to_save(int local_rank, Duration grace) {
  const auto found = by_local_rank_.find(local_rank);
  if (found != by_local_rank_.end()) found->second->ask_to_save(grace);
}

// Who has not said hello yet may be that worker.
void WorkerChannel::hear_last_words(int local_rank) {
  let_in();
  const std::vector<std::shared_ptr<Session>> sessions(sessions_.begin(), sessions_.end());
  for (const auto& session : sessions)
    if (session->local_rank.value_or(local_rank) == local_rank) session->hear();
}

}  // namespace muster::agent
