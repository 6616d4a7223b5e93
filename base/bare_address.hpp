// One form for one address, wherever it was seen: without the name of an interface, and IPv4 as IPv4 also where a
// socket of both families shows it inside IPv6.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <string>

namespace muster {

/// With the name of an interface, if there is one.
inline boost::asio::ip::address unmapped(const boost::asio::ip::address& address) {
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address;
  return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, address.to_v6());
}

inline boost::asio::ip::address bare(const boost::asio::ip::address& address) {
  const auto plain = unmapped(address);
  if (!plain.is_v6()) return plain;
  auto v6 = plain.to_v6();
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
