// Who already listens on a port of this machine, as far as /proc lets us see.
#pragma once

#include <cstdint>
#include <string>

namespace muster {

/// "held by pid 4711 (python3)", or empty when nobody or nobody visible does.
std::string port_holder(std::uint16_t port);

}  // namespace muster
