// This node's health over HTTP, read only, at a TCP port or a Unix socket.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "agent/health/health_page.hpp"
#include "base/error.hpp"
#include "base/http_pages.hpp"

namespace muster::agent {

/// Used from the io's thread. The socket is closed, and a Unix one removed, by stop() or with this object; what waits in
/// the io then calls nothing of it any more.
class HealthServer {
 public:
  using Answer = std::function<HealthAnswer(std::string_view target)>;

  /// `where`: "HOST:PORT" (port 0: the kernel chooses) or "unix:PATH". A Unix socket that a dead process left at the
  /// path is replaced; one that somebody listens at, or any other file, is an error, and so is a folder that is not there.
  static Result<std::unique_ptr<HealthServer>> listen(boost::asio::io_context& io, const std::string& where,
                                                      Answer answer);
  ~HealthServer();
  HealthServer(const HealthServer&) = delete;
  HealthServer& operator=(const HealthServer&) = delete;

  /// "http://127.0.0.1:8080/health", "unix:/run/muster.sock".
  const std::string& address() const { return address_; }
  void stop();

 private:
  explicit HealthServer(Answer answer);
  Result<void> listen_at_port(boost::asio::io_context& io, const std::string& where);
  Result<void> listen_at_path(boost::asio::io_context& io, const std::string& path);

  std::string address_;
  std::string path_;  ///< of a Unix socket that is ours
  HttpPages pages_;
};

}  // namespace muster::agent
