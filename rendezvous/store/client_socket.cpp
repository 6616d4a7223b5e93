#include "rendezvous/store/client_socket.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;

/// 0 once the socket is ready, ETIMEDOUT, or another errno.
int wait_until_ready(int fd, short events, StoreSocket::TimePoint deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    const auto wait_ms = std::clamp<std::int64_t>(left, 0, std::numeric_limits<int>::max());
    pollfd entry{fd, events, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(wait_ms));
    if (ready > 0) return 0;
    if (ready == 0 && left <= wait_ms) return ETIMEDOUT;
    if (ready < 0 && errno != EINTR) return errno;
  }
}

/// A connection to a free local port can meet itself: the kernel may choose that very port for this end.
bool connected_to_itself(int fd) {
  sockaddr_storage own{};
  sockaddr_storage peer{};
  socklen_t own_length = sizeof own;
  socklen_t peer_length = sizeof peer;
  return ::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_length) == 0 &&
         ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_length) == 0 &&
         own_length == peer_length && std::memcmp(&own, &peer, own_length) == 0;
}

int connect_address(int fd, const addrinfo& address, StoreSocket::TimePoint deadline) {
  if (::connect(fd, address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS && errno != EINTR) return errno;
    if (const int error = wait_until_ready(fd, POLLOUT, deadline)) return error;
    int error = 0;
    socklen_t length = sizeof error;
    if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return errno;
    if (error) return error;
  }
  if (connected_to_itself(fd)) return ECONNREFUSED;
  const int on = 1;
  if (::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) return errno;
  return 0;
}

}  // namespace

Result<StoreSocket> StoreSocket::connect(const Endpoint& server, TimePoint deadline) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failure = ::getaddrinfo(server.host.c_str(), std::to_string(server.port).c_str(), &hints, &found);
  if (failure != 0)
    return Error{server.text(), failure == EAI_SYSTEM ? errno_text(errno) : ::gai_strerror(failure)};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, ::freeaddrinfo);
  int error = EADDRNOTAVAIL;
  for (const auto* address = found; address; address = address->ai_next) {
    UniqueFd fd(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    error = fd ? connect_address(fd.get(), *address, deadline) : errno;
    if (error == 0) return StoreSocket(std::move(fd));
  }
  return errno_error(server.text(), error);
}

Result<void> StoreSocket::send_all(std::string_view bytes, TimePoint deadline) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {
      if (const int error = wait_until_ready(fd_.get(), POLLOUT, deadline)) return errno_error("send", error);
    } else if (errno != EINTR) {
      return errno_error("send", errno);
    }
  }
  return {};
}

Result<StoreSocket::Received> StoreSocket::receive(std::string& buffer, TimePoint deadline) {
  std::array<char, 64 * 1024> chunk;
  for (;;) {
    if (const int error = wait_until_ready(fd_.get(), POLLIN, deadline)) {
      if (error == ETIMEDOUT) return Received::timeout;
      return errno_error("poll", error);
    }
    const ssize_t count = ::recv(fd_.get(), chunk.data(), chunk.size(), 0);
    if (count > 0) {
      buffer.append(chunk.data(), static_cast<std::size_t>(count));
      return Received::some;
    }
    if (count == 0 || errno == ECONNRESET) return Received::closed;
    if (errno != EAGAIN && errno != EINTR) return errno_error("recv", errno);
  }
}

}  // namespace muster::rendezvous
