#include "rendezvous/client/operator_call.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <optional>

#include "rendezvous/client/connect.hpp"
#include "rendezvous/protocol/handshake.hpp"

namespace muster::rendezvous {
namespace {

class Call final : public Connection::Listener, public std::enable_shared_from_this<Call> {
 public:
  Call(const Endpoint& endpoint, const Token* token, const OperatorRequest& request)
      : endpoint_(endpoint),
        request_(request),
        handshake_({PeerRole::operator_, request.job, "", "", {}, random_nonce()}, token) {}

  void start(TcpSocket socket, const std::shared_ptr<Tls>& tls) {
    connection_ = secured_connection(std::move(socket), endpoint_.text(), tls, endpoint_.host);
    connection_->start(shared_from_this());
    connection_->send(handshake_.first_frame());
  }

  void on_frame(const Frame& frame) override {
    if (open_) return finish(decode<OperatorReply>(frame));
    auto step = handshake_.on_frame(frame);
    if (!step.reply.empty()) connection_->send(std::move(step.reply));
    if (step.refused) return finish(Error{endpoint_.text(), "refused: " + step.refused->reason});
    if (!step.welcome) return;
    open_ = true;
    connection_->allow(kMaxReplyPayloadBytes, kMaxHandshakePayloadBytes);
    connection_->send(encode(request_));
  }

  void on_garbage(const std::string& why) override {
    finish(Error{endpoint_.text(), "what answers there is no muster rendezvous: " + why});
  }

  void on_end(const Connection::Ending& ending) override {
    if (!result) result = Error{endpoint_.text(), ending.why};
  }

  std::optional<Result<OperatorReply>> result;

 private:
  void finish(Result<OperatorReply> outcome) {
    result = std::move(outcome);
    connection_->abort();
  }

  Endpoint endpoint_;
  OperatorRequest request_;
  PeerHandshake handshake_;
  std::shared_ptr<Connection> connection_;
  bool open_ = false;
};

}  // namespace

Result<OperatorReply> ask_daemon(const Endpoint& endpoint, const Token* token,
                                 const std::shared_ptr<Tls>& tls, const OperatorRequest& request,
                                 Duration limit) {
  boost::asio::io_context io;
  const auto call = std::make_shared<Call>(endpoint, token, request);
  const auto connect_and_ask = [&]() -> boost::asio::awaitable<void> {
    auto socket = co_await connect_to(io, endpoint, limit, std::make_shared<ConnectStop>());
    if (socket)
      call->start(std::move(*socket), tls);
    else
      call->result = socket.error();
  };
  boost::asio::co_spawn(io, connect_and_ask, boost::asio::detached);
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!call->result && io.run_one_until(deadline) > 0) {
  }
  if (call->result) return *call->result;
  return Error{endpoint.text(), "no answer within " + human(limit)};
}

}  // namespace muster::rendezvous
