#include "base/endpoint.hpp"

#include <algorithm>
#include <charconv>

namespace muster {

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
  if (has_port) {
    const auto number = parse_integer(port, 0, 65535);
    if (!number) return Error{"endpoint '" + text + "'", "port " + number.error().sentence()};
    endpoint.port = static_cast<std::uint16_t>(*number);
  }
  return endpoint;
}

}  // namespace muster
