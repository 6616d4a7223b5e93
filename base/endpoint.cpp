#include "base/endpoint.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>

namespace muster {

namespace {

/// A host that can only be meant as an address and is none would be looked up as a name until a deadline. Empty: fine.
std::string address_fault(const std::string& host) {
  in6_addr ignored{};
  if (host.find(':') != std::string::npos) {
    const std::string address = host.substr(0, host.find('%'));  // an interface may follow
    return ::inet_pton(AF_INET6, address.c_str(), &ignored) == 1
               ? ""
               : "'" + host + "' is no IPv6 address; with a port it is written [ADDRESS]:PORT";
  }
  const bool is_numeric = host.find_first_not_of("0123456789.") == std::string::npos &&
                          std::count(host.begin(), host.end(), '.') == 3;
  return is_numeric && ::inet_pton(AF_INET, host.c_str(), &ignored) != 1 ? "'" + host + "' is no IPv4 address"
                                                                         : "";
}

/// An IPv4 address in IPv6's spelling is what it was before: sockets of one family do not take that of the other.
void unmap(std::string& host) {
  in6_addr v6{};
  if (::inet_pton(AF_INET6, host.c_str(), &v6) != 1 || !IN6_IS_ADDR_V4MAPPED(&v6)) return;
  char text[INET_ADDRSTRLEN];
  if (::inet_ntop(AF_INET, &v6.s6_addr[12], text, sizeof text) != nullptr) host = text;
}

}  // namespace

std::string Endpoint::text() const {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<long> parse_integer(const std::string& text, long low, long high) {
  long number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  const auto allowed = "a whole number from " + std::to_string(low) + " to " + std::to_string(high);
  if (text.empty() || error != std::errc{} || stop != end) return Error{"'" + text + "'", "not " + allowed};
  if (number < low || number > high) return Error{"'" + text + "'", "out of range, allowed is " + allowed};
  return number;
}

Result<Endpoint> parse_endpoint(const std::string& text, std::uint16_t default_port) {
  Endpoint endpoint{"", default_port};
  std::string port;
  bool has_port = false;
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string::npos) return Error{"endpoint '" + text + "'", "the opening '[' has no ']'"};
    endpoint.host = text.substr(1, close - 1);
    const auto rest = text.substr(close + 1);
    if (!rest.empty() && rest[0] != ':')
      return Error{"endpoint '" + text + "'", "after ']' only ':PORT' may follow"};
    has_port = !rest.empty();
    if (has_port) port = rest.substr(1);
  } else if (std::count(text.begin(), text.end(), ':') >= 2) {
    endpoint.host = text;
  } else {
    const auto colon = text.find(':');
    endpoint.host = text.substr(0, colon);
    has_port = colon != std::string::npos;
    if (has_port) port = text.substr(colon + 1);
  }
  if (endpoint.host.empty()) endpoint.host = "localhost";
  if (const auto fault = address_fault(endpoint.host); !fault.empty())
    return Error{"endpoint '" + text + "'", fault};
  unmap(endpoint.host);
  if (has_port) {
    const auto number = parse_integer(port, 0, 65535);
    if (!number) return Error{"endpoint '" + text + "'", "port " + number.error().sentence()};
    endpoint.port = static_cast<std::uint16_t>(*number);
  }
  return endpoint;
}

}  // namespace muster
