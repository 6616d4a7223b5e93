#include "rendezvous/store/listener.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <limits>

#include "base/endpoint.hpp"
#include "base/port_holder.hpp"
#include "base/unique_fd.hpp"

namespace muster::rendezvous {
namespace {

using boost::asio::ip::tcp;

/// Half-open connections of hosts that crashed are noticed after about two minutes.
constexpr int keepalive_idle_s = 60;
constexpr int keepalive_interval_s = 20;
constexpr int keepalive_probes_max = 3;

int set_option(int fd, int level, int name, int value) {
  return ::setsockopt(fd, level, name, &value, sizeof value) == 0 ? 0 : errno;
}

/// Accepted sockets inherit what is set here, which saves five system calls for each of them. 0 or an errno.
int set_options(int fd, bool v6, bool both_families) {
  int error = set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (!error && v6) error = set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, both_families ? 0 : 1);
  if (!error) error = set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  if (!error) error = set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  if (!error) error = set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, keepalive_idle_s);
  if (!error) error = set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, keepalive_interval_s);
  if (!error) error = set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, keepalive_probes_max);
  return error;
}

Result<tcp::acceptor> listen_at(const boost::asio::any_io_executor& executor, const tcp::endpoint& where,
                                const std::string& what, bool both_families) {
  // Not through Asio's open(), which makes a socket that a process started at the same moment would inherit.
  UniqueFd fd(::socket(where.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return errno_error(what, errno);
  if (const int error = set_options(fd.get(), where.protocol() == tcp::v6(), both_families))
    return errno_error(what, error);
  if (::bind(fd.get(), where.data(), static_cast<socklen_t>(where.size())) != 0)
    return errno_error(what, errno, errno == EADDRINUSE ? "another program has this port" : "");
  // The kernel cuts the backlog to net.core.somaxconn.
  if (::listen(fd.get(), std::numeric_limits<int>::max()) != 0) return errno_error(what, errno);
  tcp::acceptor acceptor(executor);
  boost::system::error_code error;
  acceptor.assign(where.protocol(), fd.get(), error);
  if (error) return errno_error(what, error.value());
  fd.release();
  return acceptor;
}

Result<tcp::acceptor> listen_on(const boost::asio::any_io_executor& executor, const std::string& address,
                                std::uint16_t port) {
  if (address.empty()) {
    const std::string what = "listening on port " + std::to_string(port) + " of every address";
    auto both = listen_at(executor, {tcp::v6(), port}, what, true);
    const bool no_v6 =
        !both && (both.error().error_number == EAFNOSUPPORT || both.error().error_number == EADDRNOTAVAIL);
    if (no_v6) return listen_at(executor, {tcp::v4(), port}, what, false);
    return both;
  }
  const std::string what = "listening on " + Endpoint{address, port}.text();
  boost::system::error_code error;
  const auto parsed = boost::asio::ip::make_address(address, error);
  if (error) return Error{what, "not a numeric address", "", EINVAL};
  return listen_at(executor, {parsed, port}, what, false);
}

}  // namespace

Result<tcp::acceptor> open_listener(const boost::asio::any_io_executor& executor, const std::string& address,
                                    std::uint16_t port) {
  auto listener = listen_on(executor, address, port);
  if (listener || listener.error().error_number != EADDRINUSE) return listener;
  Error taken = listener.error();
  if (std::string holder = port_holder(port); !holder.empty()) taken.next = std::move(holder);
  return taken;
}

Result<tcp::acceptor> open_listener(const boost::asio::any_io_executor& executor, const std::string& address,
                                    const PortRange& ports) {
  if (ports.first == ports.last) return open_listener(executor, address, ports.first);
  for (std::uint32_t port = ports.first;; ++port) {
    auto listener = listen_on(executor, address, static_cast<std::uint16_t>(port));
    if (listener || listener.error().error_number != EADDRINUSE) return listener;
    if (port < ports.last) continue;
    Error taken = errno_error("listening on " + (address.empty() ? "any address" : address), EADDRINUSE);
    taken.why += ": other programs have all ports of " + ports.text();
    if (const std::string holder = port_holder(ports.first); !holder.empty())
      taken.next = fmt::format("{} is {}", ports.first, holder);
    return taken;
  }
}

Result<tcp::acceptor> share_listener(const boost::asio::any_io_executor& executor, tcp::acceptor& listener) {
  const std::string what = "sharing the listening socket";
  UniqueFd fd(::fcntl(listener.native_handle(), F_DUPFD_CLOEXEC, 3));
  if (!fd) return errno_error(what, errno);
  boost::system::error_code error;
  const auto protocol = listener.local_endpoint(error).protocol();
  tcp::acceptor shared(executor);
  if (!error) shared.assign(protocol, fd.get(), error);
  if (error) return errno_error(what, error.value());
  fd.release();
  return shared;
}

}  // namespace muster::rendezvous
