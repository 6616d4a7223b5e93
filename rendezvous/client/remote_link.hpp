// The agent's conversation with a rendezvous daemon over the network. It outlives its connections: it
// connects, proves itself, keeps alive, and when the connection breaks, connects again and says what the
// agent is and has (LinkMemory), so that nothing restarts because of a connection that came back.
//
// The agent sees the daemon's messages only. Two of them may come from the link itself: JobEnded with
// rendezvous_failed, when the daemon could not be reached in time, and Refused, when it will not have this
// node. After either, and after the daemon's own, the link does not connect any more. A daemon that cannot be trusted
// (TLS) ends a node that was never in at once; one that was in waits for it to be mended as for one that is away.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/endpoint.hpp"
#include "rendezvous/client/link.hpp"
#include "rendezvous/core/policy.hpp"
#include "rendezvous/protocol/authentication.hpp"
#include "rendezvous/protocol/channel_messages.hpp"
#include "rendezvous/protocol/tls.hpp"

namespace muster::rendezvous {

struct RemoteLinkOptions {
  using ms = std::chrono::milliseconds;
  using s = std::chrono::seconds;

  Endpoint endpoint;
  std::string job;
  NodeId node;
  std::string incarnation;  ///< as in the offers; drawn by the link when empty
  JobPolicy policy;
  std::vector<PolicyValue> settings;  ///< what all nodes must have alike besides: see policy_values.hpp
  std::optional<Token> token;
  std::shared_ptr<Tls> tls;  ///< null: none

  Duration join_deadline = s(600);  ///< from start() to the first connection that is let in
  Duration resume_budget = s(60);   ///< for each broken connection, to the next one
  Duration connect_timeout = s(5);  ///< for each address that is tried
  Duration handshake_timeout = s(10);
  Duration handshake_notice = s(4);  ///< a handshake without an answer is told after so long
  Duration first_retry = ms(50);     ///< doubles up to max_retry; each wait is 50 to 100 % of it
  Duration max_retry = s(2);
  Duration linger = s(2);    ///< after close(), for the last words to get through
  Duration farewell = s(3);  ///< after close(), until the daemon has read a Leave and, if away, is back
  Duration farewell_notice = ms(300);  ///< when the user is told that this takes time
  Duration standing_farewell = s(10);  ///< the same, of one that somebody keeps running
  Duration standing_patience =
      s(20);  ///< how long a standing daemon is given to come back before `unreachable` is called for it
  Duration duplicate_patience =
      s(20);  ///< how long "this node is here already" is taken for a dead connection; then it is final

  /// Lines for the user: cannot reach, refused, lost, back again. Few: the second of a kind comes after 5 s, then ever
  /// later.
  std::function<void(const std::string&)> notice;
  /// Called when a try to connect has failed, before the wait for the next one; once it was there and was a standing
  /// one, standing_patience (at most half the resume budget) later. Whoever may host the daemon looks here whether it
  /// is needed.
  std::function<void()> unreachable;
  /// The numeric addresses of this machine, asked for before each Join: the daemon tells whoever serves the worker
  /// store, who then expects this node's workers from them. More than kMaxOwnAddresses are not told.
  std::function<std::vector<std::string>()> own_addresses;
  /// Called before the receiver gets an Assignment with group rank 0: from which addresses the round's workers may
  /// come. None: from any.
  std::function<void(const StoreClients&)> store_clients;
};

/// All calls from the thread that runs `io`. The receiver is called from `io`, never from inside send(). The
/// link may go at any time; what is under way ends by itself. When an offer has no address, the link fills in
/// the address that its own connection to the daemon has: one that is proven to be reachable from there.
class RemoteLink final : public Link {
 public:
  RemoteLink(boost::asio::io_context& io, RemoteLinkOptions options);
  ~RemoteLink() override;

  void on_message(Receiver receiver) override;
  void start() override;
  void send(AgentMessage message) override;
  void close() override;
  /// After close(): nothing that was sent before is under way any more; the daemon has it, or does not take it.
  bool last_words_out() const;

  struct Statistics {
    int connections = 0;
    std::uint64_t messages_sent = 0;
    std::uint64_t messages_received = 0;
    std::uint64_t bytes_sent = 0;
    std::uint64_t bytes_received = 0;
  };
  Statistics statistics() const;

 private:
  class Conversation;
  std::shared_ptr<Conversation> conversation_;
};

}  // namespace muster::rendezvous
