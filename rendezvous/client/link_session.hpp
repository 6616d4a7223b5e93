// One connection of a link, from its handshake to its end: opens it, keeps it alive, notices when the daemon
// has fallen silent, turns frames into messages. What the connection means for the agent is its owner's
// business.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <string>

#include "rendezvous/protocol/connection.hpp"
#include "rendezvous/protocol/handshake.hpp"
#include "rendezvous/protocol/tls.hpp"

namespace muster::rendezvous {

class LinkSession final : public Connection::Listener, public std::enable_shared_from_this<LinkSession> {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void on_welcome(const Welcome& welcome) = 0;
    virtual void on_message(const DaemonMessage& message) = 0;
    virtual void on_store_clients(const StoreClients& clients) = 0;
    virtual void on_beat() = 0;  ///< the connection stands, and time for a heartbeat has come
    virtual void on_refused(const Refused& refused) = 0;  ///< during the handshake; on_end follows
    virtual void on_no_answer_yet() = 0;  ///< the connection stands, and its handshake takes long
    virtual void on_all_read() {}
    virtual void on_end(const Connection::Ending& ending, bool was_open) = 0;
  };

  struct Timing {
    Duration handshake_timeout{};
    Duration handshake_notice{};  ///< so long without an answer is worth a word
    Duration linger{};
  };

  struct Traffic {
    std::uint64_t messages_sent = 0;
    std::uint64_t messages_received = 0;
    std::uint64_t bytes_sent = 0;
    std::uint64_t bytes_received = 0;
  };

  /// `token` may be null; it must live as long as the owner, who is held until the end.
  struct Security {
    const Token* token = nullptr;
    std::shared_ptr<Tls> tls;  ///< null: none
    std::string host;          ///< whom the daemon's certificate has to name
  };

  LinkSession(boost::asio::io_context& io, TcpSocket socket, const Hello& hello, Timing timing,
              const Security& security, std::shared_ptr<Owner> owner);

  void start();
  bool open() const { return open_; }
  bool ended() const { return ended_; }
  void send(AgentMessage message);
  void send(const OwnAddresses& own) { write(encode(own)); }
  /// The owner hears nothing any more; what was sent still goes out.
  void close();
  /// Asks for a sign that all which was sent so far has been read: then the owner's on_all_read() is called.
  void ask_whether_read();
  Traffic traffic() const;

  void on_frame(const Frame& frame) override;
  void on_garbage(const std::string& why) override;
  void on_end(const Connection::Ending& ending) override;

 private:
  void on_handshake(const Frame& frame);
  void on_store_clients(const Frame& frame);
  void opened(const Welcome& welcome);
  void beat();
  void beat_answered();
  void await_answer();
  void end_after(Duration limit, const char* why);
  void end(const std::string& why);
  void write(std::string frame);

  std::shared_ptr<Connection> connection_;
  PeerHandshake handshake_;
  Timing timing_;
  std::shared_ptr<Owner> owner_;
  boost::asio::steady_timer timer_;
  std::string local_address_;
  Duration heartbeat_interval_{};
  Instant last_heard_{};
  Traffic traffic_;
  bool open_ = false;
  bool ended_ = false;
  int beats_unanswered_ = 0;
  bool asks_whether_read_ = false;
};

}  // namespace muster::rendezvous
