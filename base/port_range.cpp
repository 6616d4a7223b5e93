#include "base/port_range.hpp"

#include "base/endpoint.hpp"

namespace muster {

std::string PortRange::text() const {
  return std::to_string(first) + (last == first ? "" : "-" + std::to_string(last));
}

Result<PortRange> parse_port_range(const std::string& text) {
  const auto dash = text.find('-');
  const auto first = parse_integer(text.substr(0, dash), 1, 65535);
  const auto last = dash == std::string::npos ? first : parse_integer(text.substr(dash + 1), 1, 65535);
  if (!first || !last || *first > *last)
    return Error{"ports '" + text + "'", "neither a port from 1 to 65535 nor FIRST-LAST"};
  return PortRange{static_cast<std::uint16_t>(*first), static_cast<std::uint16_t>(*last)};
}

}  // namespace muster
