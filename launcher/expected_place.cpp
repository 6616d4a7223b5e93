#include "launcher/expected_place.hpp"

namespace muster::launcher {

std::string own_address(const Meeting& meeting, const Place& place, const std::vector<Address>& its,
                        const std::vector<Address>& ours) {
  if (!meeting.local_addr.empty()) return meeting.local_addr;
  if (const auto own = address_by(place, ours)) return own->to_string();
  // Which of several is reached is known when the connection stands; it brings its own address.
  if (its.size() != 1) return "";
  const auto towards = address_towards(its.front(), meeting.endpoint.port);
  return towards ? towards->to_string() : "";
}

ExpectedPlace expected_place(const Meeting& meeting) {
  const auto its = addresses_of(meeting.endpoint.host);
  if (!its) return {meeting.local_addr, false, false, its.error().sentence()};
  const auto ours = local_addresses();
  if (!ours) return {meeting.local_addr, false, false, ours.error().sentence()};
  const Place place = place_of(meeting.endpoint.host, *its, *ours, meeting.is_host);
  return {own_address(meeting, place, *its, *ours), place.here(), place.loopback, place.why};
}

}  // namespace muster::launcher
