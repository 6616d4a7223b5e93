// The daemon's state over HTTP, read only: /healthz, /metrics (Prometheus text), /v1/jobs, /v1/jobs/ID.
//
// With a token, everything but /healthz wants "Authorization: Bearer TOKEN".
#pragma once

#include "base/http_pages.hpp"
#include "rendezvous/server/daemon.hpp"

namespace muster::rendezvous {

class HttpServer {
 public:
  /// The daemon outlives it.
  HttpServer(boost::asio::io_context& io, const Daemon& daemon);

  Result<Endpoint> listen(const Endpoint& endpoint);
  void stop() { pages_.stop(); }

 private:
  boost::asio::io_context& io_;
  HttpPages pages_;
};

HttpAnswer answer_http(const Daemon& daemon, const HttpRequest& request);

/// The daemon's numbers in Prometheus' text format.
std::string metrics_text(const Daemon& daemon);

}  // namespace muster::rendezvous
