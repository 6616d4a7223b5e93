// One open connection that carries frames, for both ends of the channel. What it is carried by (a TCP socket, bare
// or under TLS) is the business of the class behind it; the rest of the code sees frames and one ending.
//
// Everything happens on the thread that runs the io_context. Frames are delivered in order; the listener may
// call send(), close_after_sending() and abort() from inside. Bounded in both directions: of what comes in,
// at most one frame is held; of what goes out, at most `max_unsent_bytes`, and a peer that lets it grow
// beyond is cut.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <optional>
#include <string>

#include "base/time.hpp"
#include "rendezvous/protocol/frame.hpp"

namespace muster::rendezvous {

using TcpSocket =
    boost::asio::ip::tcp::socket::rebind_executor<boost::asio::io_context::executor_type>::other;

/// "10.0.0.1:29400", "[fd00::1]:29400".
std::string text(const boost::asio::ip::tcp::endpoint& endpoint);

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  struct Ending {
    enum class Kind {
      closed,      ///< by the other side, or because its process is gone
      broken,      ///< by the network
      silent,      ///< by whoever watches the time: nothing was heard for too long
      slow,        ///< the peer does not take what is sent to it
      not_secured  ///< TLS could not be agreed on
    };
    Kind kind = Kind::closed;
    std::string why;
  };

  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void on_frame(const Frame& frame) = 0;
    /// What came is no stream of frames. All that follows is thrown away; time for a last word and
    /// close_after_sending().
    virtual void on_garbage(const std::string& why) = 0;
    /// Once, and nothing after it; never after abort().
    virtual void on_end(const Ending& ending) = 0;
  };

  virtual ~Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Held until the end.
  void start(std::shared_ptr<Listener> listener);
  void send(std::string frame);
  /// Delivers no more frames; ends when what was sent is out and the peer has closed its side, so that the
  /// last word is not lost to a reset. A peer that does not close is the caller's to abort() after a while.
  void close_after_sending();
  /// Ends now and silently.
  void abort();

  void allow(std::uint32_t max_payload_bytes, std::size_t max_unsent_bytes);
  const std::string& peer() const { return peer_; }
  /// Since when something waits to be taken by the peer.
  std::optional<Instant> unsent_since() const { return unsent_since_; }
  std::uint64_t bytes_received() const { return bytes_received_; }
  std::uint64_t bytes_sent() const { return bytes_sent_; }

 protected:
  explicit Connection(std::string peer) : peer_(std::move(peer)) {}

  virtual void read_some() = 0;                        ///< leads to received() or failed(), later
  virtual void write_all(const std::string& out) = 0;  ///< leads to written() or failed(), later
  virtual void half_close() = 0;
  virtual void shut_down() = 0;

  void received(std::string_view bytes);
  void written();
  void failed(const boost::system::error_code& error);
  void ended(const Ending& ending);

 private:
  void write_next();
  void take_frames();
  void end(const Ending& ending);

  std::string peer_;
  std::shared_ptr<Listener> listener_;
  FrameReader reader_{kMaxHandshakePayloadBytes};
  std::size_t max_unsent_bytes_ = kMaxHandshakePayloadBytes;
  std::string in_flight_;
  std::string waiting_;
  std::optional<Instant> unsent_since_;
  std::uint64_t bytes_received_ = 0;
  std::uint64_t bytes_sent_ = 0;
  bool ended_ = false;
  bool closing_ = false;
  bool deaf_ = false;  ///< what comes is thrown away
};

/// Takes the socket over.
std::shared_ptr<Connection> plain_connection(TcpSocket socket, std::string peer);

}  // namespace muster::rendezvous
