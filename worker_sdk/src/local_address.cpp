#include "worker_sdk/src/local_address.hpp"

#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <memory>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "muster/worker/process_group.hpp"

namespace muster::worker {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

/// Connecting a UDP socket only asks the routing table. Empty, with errno set, if there is no way.
std::string address_towards(const addrinfo& target) {
  const UniqueFd fd(::socket(target.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd || ::connect(fd.get(), target.ai_addr, target.ai_addrlen) != 0) return {};
  sockaddr_storage own{};
  socklen_t length = sizeof(own);
  if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &length) != 0) return {};
  std::array<char, NI_MAXHOST> text{};
  if (::getnameinfo(reinterpret_cast<sockaddr*>(&own), length, text.data(), text.size(), nullptr, 0,
                    NI_NUMERICHOST) != 0)
    return {};
  return text.data();
}

}  // namespace

std::string local_address_towards(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int result = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (result != 0) throw CollectiveError("MASTER_ADDR " + host + ": " + ::gai_strerror(result));
  const std::unique_ptr<addrinfo, FreeAddresses> list(found);
  int last_error = 0;
  for (const auto* target = list.get(); target; target = target->ai_next) {
    auto address = address_towards(*target);
    if (!address.empty()) return address;
    last_error = errno;
  }
  throw CollectiveError(errno_error("no route to MASTER_ADDR " + host, last_error).sentence());
}

}  // namespace muster::worker
