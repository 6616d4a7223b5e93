// The addresses of this machine's interfaces, and which of them leads where.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/endpoint.hpp"
#include "base/error.hpp"

namespace muster::launcher {

using Address = boost::asio::ip::address;

/// All of them, of both families, loopback too.
Result<std::vector<Address>> local_addresses();

/// The same as plain texts, without loopback: where this machine's programs come from when they leave it. Empty if
/// they cannot be read.
std::vector<std::string> outgoing_addresses();

/// Every address that the host has, of both families (an IPv4-mapped one is of IPv4); a numeric one is not looked up.
/// Blocks on a name.
Result<std::vector<Address>> addresses_of(const std::string& host);

/// The address of ours from which packets to `there` leave. Sends nothing. Nothing: no route.
std::optional<Address> address_towards(const Address& there, std::uint16_t port);

/// Why nothing of this machine can listen at that address; nothing: it is one of its own.
std::optional<Error> not_ours(const Address& address);

/// "10.0.0.1, fd00::1".
std::string listed(const std::vector<Address>& addresses);

}  // namespace muster::launcher
