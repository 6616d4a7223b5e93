#include "launcher/hosting.hpp"

#include <algorithm>

namespace muster::launcher {

namespace {

// A link-local address without a scope may be that of any interface.
bool same(const Address& a, const Address& b) {
  if (!a.is_v6() || !b.is_v6()) return a == b;
  const auto x = a.to_v6();
  const auto y = b.to_v6();
  const bool scopes_agree = x.scope_id() == y.scope_id() || x.scope_id() == 0 || y.scope_id() == 0;
  return x.to_bytes() == y.to_bytes() && scopes_agree;
}

// All of 127.0.0.0/8 is, though interfaces name one of it.
bool is_ours(const Address& address, const std::vector<Address>& ours) {
  return address.is_loopback() ||
         std::any_of(ours.begin(), ours.end(), [&](const Address& each) { return same(address, each); });
}

bool is_numeric(const std::string& host) {
  boost::system::error_code error;
  boost::asio::ip::make_address(host, error);
  return !error;
}

const std::vector<Address>& everywhere() {
  static const std::vector<Address> both = {boost::asio::ip::address_v6::any(),
                                            boost::asio::ip::address_v4::any()};
  return both;
}

bool can_be_reached(const Address& address) {
  return !address.is_loopback() && !(address.is_v6() && address.to_v6().is_link_local());
}

}  // namespace

Place place_of(const std::string& host, const std::vector<Address>& its, const std::vector<Address>& ours,
               std::optional<bool> is_host) {
  Place place;
  std::vector<Address> shared;
  for (const Address& address : its)
    if (is_ours(address, ours)) shared.push_back(address);
  const bool all_loopback =
      !its.empty() && std::all_of(its.begin(), its.end(), [](const Address& a) { return a.is_loopback(); });
  place.loopback = all_loopback && (is_numeric(host) || host == "localhost");
  if (is_host) {
    place.why = *is_host ? "is_host says that it is hosted here" : "is_host says that it is not hosted here";
    place.foreign = *is_host && shared.empty();
    if (*is_host) place.listen_at = place.foreign ? everywhere() : shared;
    return place;
  }
  if (shared.empty()) {
    place.why = "none of " + listed(its) + " is an address of this machine, which has " + listed(ours);
    return place;
  }
  place.hidden_by_loopback = all_loopback && !place.loopback;
  place.listen_at = place.hidden_by_loopback ? everywhere() : shared;
  place.why =
      listed(shared) + (shared.size() == 1 ? " is an address" : " are addresses") + " of this machine";
  return place;
}

std::optional<Address> address_by(const Place& place, const std::vector<Address>& ours) {
  if (!place.here()) return std::nullopt;
  if (!place.listen_at.front().is_unspecified()) return place.listen_at.front();
  const auto first = std::find_if(ours.begin(), ours.end(), can_be_reached);
  if (first == ours.end()) return std::nullopt;
  return *first;
}

}  // namespace muster::launcher
