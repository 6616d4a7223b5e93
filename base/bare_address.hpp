// One form for one address, wherever it was seen: without the name of an interface, and IPv4 as IPv4 also where a
// socket of both families shows it inside IPv6.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <string>

namespace muster {

inline boost::asio::ip::address bare(const boost::asio::ip::address& address) {
  if (!address.is_v6()) return address;
  auto v6 = address.to_v6();
  if (v6.is_v4_mapped()) return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, v6);
  v6.scope_id(0);
  return v6;
}

/// A text that is no numeric address stays as it is.
inline std::string bare_text(const std::string& text) {
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(text, error);
  return error ? text : bare(address).to_string();
}

}  // namespace muster
