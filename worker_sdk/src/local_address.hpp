// Which of this host's addresses reaches another host.
#pragma once

#include <cstdint>
#include <string>

namespace muster::worker {

/// Numeric; the one that packets to `host` leave from, so 127.0.0.1 for 127.0.0.1. Nothing is sent, and a
/// numeric `host` is not looked up. Throws CollectiveError that names the host.
std::string local_address_towards(const std::string& host, std::uint16_t port);

}  // namespace muster::worker
