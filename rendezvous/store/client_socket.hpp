// A TCP socket whose every operation ends by a deadline.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/endpoint.hpp"
#include "base/error.hpp"
#include "base/unique_fd.hpp"

namespace muster::rendezvous {

class StoreSocket {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  enum class Received { some, closed, timeout };

  StoreSocket() = default;

  /// Tries each address of the name in turn. The error is the last address's.
  static Result<StoreSocket> connect(const Endpoint& server, TimePoint deadline);

  /// Nothing if all was handed to the kernel, else what stopped it (a timeout is ETIMEDOUT).
  Result<void> send_all(std::string_view bytes, TimePoint deadline);
  /// Waits for bytes and appends them. A reset counts as closed.
  Result<Received> receive(std::string& buffer, TimePoint deadline);

  explicit operator bool() const { return static_cast<bool>(fd_); }
  void close() { fd_.reset(); }

 private:
  explicit StoreSocket(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace muster::rendezvous
