#include "rendezvous/client/link_session.hpp"

#include <fmt/format.h>
#include <netinet/tcp.h>

#include <algorithm>

namespace muster::rendezvous {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSilentIntervals = 3;
constexpr int kUnheardLimitMs = 10'000;
constexpr std::size_t kMaxUnsentBytes = 8 * 1024 * 1024;

std::string local_address_of(const TcpSocket& socket) {
  boost::system::error_code error;
  const auto local = socket.local_endpoint(error);
  return error ? "" : local.address().to_string();
}

// A link-local address has the name of an interface of the node that gave it; here it is reached through the
// interface that leads to the daemon.
std::string as_reached_from(const std::string& own, const std::string& address) {
  boost::system::error_code error;
  const auto here = boost::asio::ip::make_address(own, error);
  auto there = boost::asio::ip::make_address(address.substr(0, address.find('%')), error);
  if (error || !here.is_v6() || !there.is_v6() || !there.to_v6().is_link_local()) return address;
  if (here.to_v6().scope_id() == 0) return address;
  auto scoped = there.to_v6();
  scoped.scope_id(here.to_v6().scope_id());
  return scoped.to_string();
}

// What is said into an outage is given up by the kernel, too: otherwise the end of a connection that was abandoned
// would reach the daemon when the network is back, before its successor does, and the node would count as gone.
void bound_silence(TcpSocket& socket) {
  using UserTimeout = boost::asio::detail::socket_option::integer<IPPROTO_TCP, TCP_USER_TIMEOUT>;
  boost::system::error_code ignored;
  socket.set_option(UserTimeout(kUnheardLimitMs), ignored);
}

std::string peer_of(const TcpSocket& socket) {
  boost::system::error_code error;
  const auto remote = socket.remote_endpoint(error);
  return error ? "a peer that is gone" : text(remote);
}

}  // namespace

LinkSession::LinkSession(boost::asio::io_context& io, TcpSocket socket, const Hello& hello, Timing timing,
                         const Security& security, std::shared_ptr<Owner> owner)
    : handshake_(hello, security.token),
      timing_(timing),
      owner_(std::move(owner)),
      timer_(io),
      local_address_(local_address_of(socket)) {
  bound_silence(socket);
  auto peer = peer_of(socket);
  connection_ = secured_connection(std::move(socket), std::move(peer), security.tls, security.host);
}

void LinkSession::start() {
  connection_->start(shared_from_this());
  write(handshake_.first_frame());
  await_answer();
}

void LinkSession::await_answer() {
  const auto limit = [this](Duration left) { end_after(left, "no answer to the handshake"); };
  const auto notice = timing_.handshake_notice;
  if (notice >= timing_.handshake_timeout) return limit(timing_.handshake_timeout);
  timer_.expires_after(notice);
  timer_.async_wait([self = shared_from_this(), limit, notice](const boost::system::error_code& error) {
    if (error || !self->owner_) return;
    const auto owner = self->owner_;
    owner->on_no_answer_yet();
    if (self->owner_) limit(self->timing_.handshake_timeout - notice);
  });
}

void LinkSession::send(AgentMessage message) {
  const auto complete = [this](NodeOffer& offer) {
    if (offer.address.empty()) offer.address = local_address_;
  };
  if (auto* join = std::get_if<Join>(&message)) complete(join->offer);
  if (auto* resume = std::get_if<Resume>(&message)) complete(resume->offer);
  write(encode(message));
}

void LinkSession::write(std::string frame) {
  ++traffic_.messages_sent;
  connection_->send(std::move(frame));
}

LinkSession::Traffic LinkSession::traffic() const {
  auto traffic = traffic_;
  traffic.bytes_sent = connection_->bytes_sent();
  traffic.bytes_received = connection_->bytes_received();
  return traffic;
}

void LinkSession::on_frame(const Frame& frame) {
  if (!owner_) return;
  ++traffic_.messages_received;
  last_heard_ = Clock::now();
  if (!open_) return on_handshake(frame);
  if (frame.type == FrameType::heartbeat) return beat_answered();
  if (frame.type == FrameType::store_clients) return on_store_clients(frame);
  auto message = decode_daemon_message(frame);
  if (!message) return end("the daemon sent " + message.error().sentence());
  if (auto* assignment = std::get_if<Assignment>(&*message))
    assignment->master_addr = as_reached_from(local_address_, assignment->master_addr);
  const auto owner = owner_;  // it may close this session
  owner->on_message(*message);
}

void LinkSession::on_store_clients(const Frame& frame) {
  const auto clients = decode<StoreClients>(frame);
  if (!clients) return end("the daemon sent " + clients.error().sentence());
  owner_->on_store_clients(*clients);
}

void LinkSession::on_handshake(const Frame& frame) {
  auto step = handshake_.on_frame(frame);
  if (!step.reply.empty()) write(std::move(step.reply));
  if (step.welcome) opened(*step.welcome);
  if (!step.refused) return;
  const auto owner = owner_;
  owner->on_refused(*step.refused);
  connection_->close_after_sending();
  end_after(timing_.linger, "refused");
}

void LinkSession::opened(const Welcome& welcome) {
  open_ = true;
  connection_->allow(kMaxPayloadBytes, kMaxUnsentBytes);
  heartbeat_interval_ = std::chrono::milliseconds(std::clamp(welcome.heartbeat_interval_ms, 10u, 3'600'000u));
  timer_.cancel();
  const auto owner = owner_;
  owner->on_welcome(welcome);
  if (owner_) beat();
}

void LinkSession::beat() {
  timer_.expires_after(heartbeat_interval_);
  timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (error || !self->owner_) return;
    const auto silent = Clock::now() - self->last_heard_;
    if (silent >= kSilentIntervals * self->heartbeat_interval_)
      return self->end(fmt::format("nothing was heard from it for {}", human(silent)));
    self->owner_->on_beat();
    ++self->beats_unanswered_;
    self->write(encode_heartbeat());
    self->beat();
  });
}

// The daemon reads in order, and answers each.
void LinkSession::ask_whether_read() {
  asks_whether_read_ = true;
  ++beats_unanswered_;
  write(encode_heartbeat());
}

void LinkSession::beat_answered() {
  --beats_unanswered_;
  if (beats_unanswered_ > 0 || !std::exchange(asks_whether_read_, false)) return;
  const auto owner = owner_;
  owner->on_all_read();
}

void LinkSession::end_after(Duration limit, const char* why) {
  timer_.expires_after(limit);
  timer_.async_wait([self = shared_from_this(), why](const boost::system::error_code& error) {
    if (!error) self->end(why);
  });
}

void LinkSession::close() {
  owner_.reset();
  connection_->close_after_sending();
  end_after(timing_.linger, "closed");
}

void LinkSession::end(const std::string& why) {
  connection_->abort();
  on_end({Connection::Ending::Kind::closed, why});
}

void LinkSession::on_garbage(const std::string& why) {
  end("what answers there is no muster rendezvous: " + why);
}

void LinkSession::on_end(const Connection::Ending& ending) {
  ended_ = true;
  timer_.cancel();
  if (const auto owner = std::exchange(owner_, nullptr)) owner->on_end(ending, open_);
}

}  // namespace muster::rendezvous
