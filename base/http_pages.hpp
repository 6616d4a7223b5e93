// Read-only pages over HTTP, at any listening socket: GET and HEAD.
//
// Bounded: small requests, few connections, each with a deadline; when all are taken, the one that has kept us waiting
// for longest makes room.
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/time.hpp"

namespace muster {

struct HttpRequest {
  std::string_view target;
  std::string_view bearer;  ///< the token it came with ("Authorization: Bearer TOKEN"), may be empty
};

struct HttpAnswer {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
};

/// Used from the io's thread.
class HttpPages {
 public:
  static constexpr std::size_t kMaxConnections = 64;
  static constexpr std::uint32_t kMaxRequestBytes = 8 * 1024;
  static constexpr Duration kIdleLimit = std::chrono::seconds(10);

  using Answer = std::function<HttpAnswer(const HttpRequest&)>;
  /// Of TCP or of Unix sockets.
  using Acceptor = boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol,
                                                      boost::asio::io_context::executor_type>;

  explicit HttpPages(Answer answer);
  ~HttpPages() { stop(); }
  HttpPages(const HttpPages&) = delete;
  HttpPages& operator=(const HttpPages&) = delete;

  void serve_at(Acceptor acceptor);
  /// Closes the sockets; what waits in the io then calls nothing any more.
  void stop();

 private:
  struct Running;
  std::shared_ptr<Running> running_;
};

}  // namespace muster
