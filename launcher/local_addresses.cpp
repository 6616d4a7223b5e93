#include "launcher/local_addresses.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/udp.hpp>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/bare_address.hpp"

namespace muster::launcher {

namespace {

namespace asio = boost::asio;

Address address_from(const sockaddr& raw) {
  if (raw.sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &raw, sizeof v4);
    return asio::ip::address_v4(ntohl(v4.sin_addr.s_addr));
  }
  sockaddr_in6 v6{};
  std::memcpy(&v6, &raw, sizeof v6);
  asio::ip::address_v6::bytes_type bytes;
  std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
  return asio::ip::address_v6(bytes, v6.sin6_scope_id);
}

/// Of all interfaces that have one of these flags; 0: of all.
Result<std::vector<Address>> addresses_of_interfaces(unsigned flags) {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return errno_error("reading this machine's addresses", errno);
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(first, ::freeifaddrs);
  std::vector<Address> found;
  for (const ifaddrs* each = first; each; each = each->ifa_next) {
    if (flags != 0 && (each->ifa_flags & flags) == 0) continue;
    if (each->ifa_addr && (each->ifa_addr->sa_family == AF_INET || each->ifa_addr->sa_family == AF_INET6))
      found.push_back(address_from(*each->ifa_addr));
  }
  return found;
}

}  // namespace

Result<std::vector<Address>> local_addresses() { return addresses_of_interfaces(0); }

// Nothing leaves by an interface that is down, and a node of Kubernetes has hundreds of service addresses on one.
std::vector<std::string> outgoing_addresses() {
  const auto ours = addresses_of_interfaces(IFF_UP);
  std::vector<std::string> found;
  if (!ours) return found;
  for (const Address& address : *ours) {
    const auto text = bare(address).to_string();
    if (!address.is_loopback() && std::find(found.begin(), found.end(), text) == found.end())
      found.push_back(text);
  }
  return found;
}

Result<std::vector<Address>> addresses_of(const std::string& host) {
  boost::system::error_code error;
  const auto numeric = asio::ip::make_address(host, error);
  if (!error) return std::vector<Address>{unmapped(numeric)};
  asio::io_context io;
  const auto results = asio::ip::tcp::resolver(io).resolve(host, "", error);
  if (error) return Error{host, "the name cannot be looked up: " + error.message()};
  std::vector<Address> found;
  for (const auto& result : results) {
    const auto address = unmapped(result.endpoint().address());
    if (std::find(found.begin(), found.end(), address) == found.end()) found.push_back(address);
  }
  return found;
}

std::optional<Address> address_towards(const Address& there, std::uint16_t port) {
  asio::io_context io;
  asio::ip::udp::socket socket(io);
  boost::system::error_code error;
  socket.connect({there, port}, error);
  if (error) return std::nullopt;
  const auto here = socket.local_endpoint(error).address();
  if (error || here.is_unspecified()) return std::nullopt;
  return here;
}

std::optional<Error> not_ours(const Address& address) {
  asio::io_context io;
  asio::ip::tcp::acceptor socket(io);
  const asio::ip::tcp::endpoint any_port(address, 0);
  boost::system::error_code error;
  socket.open(any_port.protocol(), error);
  if (!error) socket.bind(any_port, error);
  if (error != boost::system::errc::address_not_available) return std::nullopt;
  const auto ours = local_addresses();
  return Error{address.to_string(),
               "not an address of this machine" + (ours ? ", which has " + listed(*ours) : "")};
}

std::string listed(const std::vector<Address>& addresses) {
  std::string text;
  for (const Address& address : addresses) text += (text.empty() ? "" : ", ") + address.to_string();
  return text;
}

}  // namespace muster::launcher
