// The daemon's state over HTTP, read only: /healthz, /metrics (Prometheus text), /v1/jobs, /v1/jobs/ID.
//
// With a token, everything but /healthz wants "Authorization: Bearer TOKEN". Bounded like the channel: small
// requests, few connections, each with a deadline.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <vector>

#include "rendezvous/server/daemon.hpp"

namespace muster::rendezvous {

class HttpServer {
 public:
  static constexpr int kMaxConnections = 64;
  static constexpr std::uint32_t kMaxRequestBytes = 8 * 1024;
  static constexpr Duration kIdleLimit = std::chrono::seconds(10);

  /// The daemon outlives it.
  HttpServer(boost::asio::io_context& io, const Daemon& daemon) : io_(io), daemon_(daemon) {}
  ~HttpServer() { stop(); }

  Result<Endpoint> listen(const Endpoint& endpoint);
  void stop();

 private:
  boost::asio::io_context& io_;
  const Daemon& daemon_;
  std::vector<TcpAcceptor> acceptors_;
  struct Running {
    bool stopped = false;
    int connections = 0;
  };
  std::shared_ptr<Running> running_ = std::make_shared<Running>();

  boost::asio::awaitable<void> accept_all(TcpAcceptor& acceptor, std::shared_ptr<Running> running);
  boost::asio::awaitable<void> serve(TcpSocket socket, std::shared_ptr<Running> running);
};

/// What a request for `target` gets: status, content type, body. `bearer`: the token it came with, may be
/// empty.
struct HttpAnswer {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
};
HttpAnswer answer_http(const Daemon& daemon, std::string_view target, std::string_view bearer);

/// The daemon's numbers in Prometheus' text format.
std::string metrics_text(const Daemon& daemon);

}  // namespace muster::rendezvous
