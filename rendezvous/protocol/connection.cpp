#include "rendezvous/protocol/connection.hpp"

#include <fmt/format.h>

#include <boost/asio/error.hpp>

#include "base/endpoint.hpp"
#include "base/error.hpp"

namespace muster::rendezvous {
namespace {

// More is given back to the allocator: most connections are idle most of their life.
constexpr std::size_t kKeptBufferBytes = 512;

Connection::Ending ending_of(const boost::system::error_code& error) {
  using Kind = Connection::Ending::Kind;
  if (error == boost::asio::error::eof) return {Kind::closed, "the peer closed the connection"};
  const bool gone = error == boost::asio::error::connection_reset || error == boost::asio::error::broken_pipe;
  const bool system = error.category() == boost::system::system_category();
  return {gone ? Kind::closed : Kind::broken, system ? errno_text(error.value()) : error.message()};
}

}  // namespace

std::string text(const boost::asio::ip::tcp::endpoint& endpoint) {
  return Endpoint{endpoint.address().to_string(), endpoint.port()}.text();
}

void Connection::start(std::shared_ptr<Listener> listener) {
  listener_ = std::move(listener);
  read_some();
}

void Connection::allow(std::uint32_t max_payload_bytes, std::size_t max_unsent_bytes) {
  reader_.allow_payload_bytes(max_payload_bytes);
  max_unsent_bytes_ = max_unsent_bytes;
}

void Connection::send(std::string frame) {
  if (ended_ || closing_) return;
  if (waiting_.size() + in_flight_.size() + frame.size() > max_unsent_bytes_)
    return end({Ending::Kind::slow, fmt::format("it left {} bytes unread, {} is the limit",
                                                waiting_.size() + in_flight_.size(), max_unsent_bytes_)});
  if (waiting_.empty())
    waiting_ = std::move(frame);
  else
    waiting_ += frame;
  if (in_flight_.empty()) write_next();
}

void Connection::write_next() {
  in_flight_.swap(waiting_);
  unsent_since_ = std::chrono::steady_clock::now();
  write_all(in_flight_);
}

void Connection::written() {
  if (ended_) return;
  bytes_sent_ += in_flight_.size();
  in_flight_.clear();
  if (in_flight_.capacity() > kKeptBufferBytes) in_flight_ = std::string();
  unsent_since_.reset();
  if (!waiting_.empty()) return write_next();
  if (closing_) half_close();
}

void Connection::received(std::string_view bytes) {
  if (ended_) return;
  bytes_received_ += bytes.size();
  if (!deaf_) {
    reader_.feed(bytes);
    take_frames();
  }
  if (!ended_) read_some();
}

void Connection::take_frames() {
  const auto listener = listener_;  // it may end this connection, and must outlive the call
  while (const auto frame = reader_.next()) {
    listener->on_frame(*frame);
    if (ended_ || deaf_) return;
  }
  if (const auto size = reader_.too_long()) {
    deaf_ = true;
    const auto head = *size & 0xFFFF;  // of a TLS record: u8 0x16 (handshake) or 0x15 (alert), u8 3
    const bool tls = head == 0x0316 || head == 0x0315;
    listener->on_garbage(tls ? "it speaks TLS" : fmt::format("a frame of {} bytes was announced", *size));
  }
}

void Connection::failed(const boost::system::error_code& error) { ended(ending_of(error)); }

void Connection::ended(const Ending& ending) {
  if (!ended_) end(ending);
}

void Connection::close_after_sending() {
  if (ended_ || closing_) return;
  closing_ = deaf_ = true;
  if (in_flight_.empty()) half_close();
}

void Connection::abort() {
  if (ended_) return;
  ended_ = true;
  listener_.reset();
  shut_down();
}

void Connection::end(const Ending& ending) {
  const auto keep_alive = shared_from_this();
  const auto listener = std::move(listener_);
  ended_ = true;
  shut_down();
  if (listener) listener->on_end(ending);
}

}  // namespace muster::rendezvous
