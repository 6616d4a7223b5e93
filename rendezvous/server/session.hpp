// The daemon's end of one connection: opens it, counts its time, turns frames into messages. Who the peer is
// and what follows is its owner's business.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "rendezvous/protocol/connection.hpp"
#include "rendezvous/protocol/handshake.hpp"
#include "rendezvous/server/timeout_queue.hpp"

namespace muster::rendezvous {

class HostedJob;

class Session final : public Connection::Listener, public std::enable_shared_from_this<Session> {
 public:
  using Queue = TimeoutQueue<Session>;

  /// Outlives every session that can still call it: it aborts them before it goes.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual std::variant<Welcome, Refused> admit(Session& session, const Hello& hello) = 0;
    virtual void on_agent_message(Session& session, const AgentMessage& message) = 0;
    virtual OperatorReply on_operator_request(const OperatorRequest& request) = 0;
    virtual void on_refusal(const Session& session, const Refused& refused) = 0;
    virtual void on_end(Session& session, const Connection::Ending& ending) = 0;
    virtual Queue& greeted_sessions() = 0;
    virtual Queue& established_sessions() = 0;
    virtual Queue& ending_sessions() = 0;
  };

  Session(Owner& owner, std::shared_ptr<Connection> connection, const Token* token, Queue& silent);
  ~Session() override;

  void start();
  void send(std::string frame) { connection_->send(std::move(frame)); }
  /// Tells the peer why, and ends.
  void refuse(const Refused& refused);
  /// Ends without a word; the owner is not told.
  void abort();
  /// Ends as if the connection had.
  void end(const Connection::Ending& ending);

  const std::string& peer() const { return connection_->peer(); }
  bool handshake_done() const { return handshake_ == nullptr; }
  Duration silent_for() const { return Queue::age(place_); }

  // Of an agent, after the handshake.
  const NodeId& node() const { return node_; }
  const std::string& incarnation() const { return incarnation_; }
  /// Of its machine, as it says; none: it did not.
  const std::vector<std::string>& addresses() const { return addresses_; }
  const std::shared_ptr<HostedJob>& job() const { return job_; }
  void belongs_to(std::shared_ptr<HostedJob> job) { job_ = std::move(job); }

  void on_frame(const Frame& frame) override;
  void on_garbage(const std::string& why) override;
  void on_end(const Connection::Ending& ending) override;

 private:
  void on_handshake(const Frame& frame);
  void on_admitted(Hello hello);
  void on_agent_frame(const Frame& frame);
  void on_own_addresses(const Frame& frame);
  void on_operator_frame(const Frame& frame);
  void move_to(Queue& queue);

  Owner& owner_;
  std::shared_ptr<Connection> connection_;
  std::unique_ptr<DaemonHandshake> handshake_;  ///< while it lasts
  Queue* queue_;
  Queue::Place place_;
  PeerRole role_ = PeerRole::agent;
  NodeId node_;
  std::string incarnation_;
  std::vector<std::string> addresses_;
  std::shared_ptr<HostedJob> job_;
};

}  // namespace muster::rendezvous
