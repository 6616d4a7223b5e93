#include "agent/reserved_ports.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/port_holder.hpp"

namespace muster::agent {

namespace {

union AnyAddress {
  sockaddr generic;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

/// 0 or an errno. Both families at one socket where there is IPv6, else IPv4.
int bind_everywhere(UniqueFd& fd, std::uint16_t port) {
  for (const int family : {AF_INET6, AF_INET}) {
    fd = UniqueFd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd) continue;
    const int yes = 1;
    const int no = 0;
    if (::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0) return errno;
    if (family == AF_INET6 && ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no) != 0)
      return errno;
    AnyAddress address{};
    address.generic.sa_family = static_cast<sa_family_t>(family);
    // The port is at the same place in both.
    address.v4.sin_port = htons(port);
    const socklen_t size = family == AF_INET6 ? sizeof address.v6 : sizeof address.v4;
    if (::bind(fd.get(), &address.generic, size) == 0) return 0;
    if (errno != EADDRNOTAVAIL && errno != EAFNOSUPPORT) return errno;
  }
  return errno;
}

Result<std::uint16_t> port_of(const UniqueFd& fd) {
  AnyAddress address{};
  socklen_t size = sizeof address;
  if (::getsockname(fd.get(), &address.generic, &size) != 0)
    return errno_error("a port for worker 0's store: getsockname", errno);
  return ntohs(address.v4.sin_port);
}

}  // namespace

Result<std::uint16_t> ReservedPorts::open(int number) {
  for (std::uint32_t port = ports_.first;; ++port) {
    UniqueFd fd;
    const int error = bind_everywhere(fd, static_cast<std::uint16_t>(port));
    if (error == 0) {
      const auto bound = port_of(fd);
      if (bound) held_.insert_or_assign(number, std::move(fd));
      return bound;
    }
    if (error == EADDRINUSE && port < ports_.last) continue;
    const auto which = ports_.any() ? std::string("of the kernel's choice") : "of " + ports_.text();
    const std::string holder = error == EADDRINUSE ? port_holder(ports_.first) : "";
    return errno_error("a port for worker 0's store, " + which + ", on all addresses", error,
                       holder.empty() ? "" : std::to_string(ports_.first) + " is " + holder);
  }
}

}  // namespace muster::agent
