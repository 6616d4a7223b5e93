#include "launcher/expected_place.hpp"

#include "launcher/hosting.hpp"

namespace muster::launcher {

namespace {

std::string address_for(const Meeting& meeting, const Place& place, const std::vector<Address>& its,
                        const std::vector<Address>& ours) {
  if (!meeting.local_addr.empty()) return meeting.local_addr;
  if (const auto own = address_by(place, ours)) return own->to_string();
  for (const Address& address : its)
    if (const auto towards = address_towards(address, meeting.endpoint.port)) return towards->to_string();
  return "";
}

}  // namespace

ExpectedPlace expected_place(const Meeting& meeting) {
  const auto its = addresses_of(meeting.endpoint.host);
  if (!its) return {meeting.local_addr, false, false, its.error().sentence()};
  const auto ours = local_addresses();
  if (!ours) return {meeting.local_addr, false, false, ours.error().sentence()};
  const Place place = place_of(meeting.endpoint.host, *its, *ours, meeting.is_host);
  return {address_for(meeting, place, *its, *ours), place.here(), place.loopback, place.why};
}

}  // namespace muster::launcher
