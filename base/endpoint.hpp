// "host:port" in all its spellings.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.hpp"

namespace muster {

struct Endpoint {
  std::string host;        ///< a name or a numeric address, IPv6 without brackets
  std::uint16_t port = 0;  ///< 0: none given, or "choose one"

  /// "10.0.0.1:29400", "[fd00::1]:29400".
  std::string text() const;
  bool operator==(const Endpoint&) const = default;
};

/// Accepts "host", "host:port", "[v6]:port", "[v6]", a bare "v6" (two colons or more). A missing port gives
/// `default_port`, an empty host gives "localhost". An IPv4-mapped IPv6 address is taken for its IPv4 address.
Result<Endpoint> parse_endpoint(const std::string& text, std::uint16_t default_port);

/// Decimal digits only, `low` to `high` inclusive, nothing around them.
Result<long> parse_integer(const std::string& text, long low, long high);

}  // namespace muster
