// Ports that may be listened on, in the order in which they are tried.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.hpp"

namespace muster {

/// 0 to 0: one of the kernel's choice.
struct PortRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;

  bool any() const { return first == 0; }
  /// "30000", "30000-30009".
  std::string text() const;
  bool operator==(const PortRange&) const = default;
};

/// "30000" or "30000-30009", from 1 to 65535, the first not above the last.
Result<PortRange> parse_port_range(const std::string& text);

}  // namespace muster
