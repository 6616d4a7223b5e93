#include "launcher/hosting.hpp"

#include <gmock/gmock.h>

#include "launcher/expected_place.hpp"

namespace muster::launcher {
namespace {

using ::testing::HasSubstr;

std::vector<Address> these(const std::vector<const char*>& texts) {
  std::vector<Address> addresses;
  for (const char* text : texts) addresses.push_back(boost::asio::ip::make_address(text));
  return addresses;
}

const auto kOurs = these({"127.0.0.1", "::1", "10.0.0.1", "192.168.7.1", "fd00::1", "fe80::1%2"});

TEST(Hosting, A1_A2_EachAddressOfEachInterfaceMakesUsTheHost) {
  for (const char* ours :
       {"10.0.0.1", "192.168.7.1", "fd00::1", "fe80::1%2", "127.0.0.1", "127.0.0.5", "::1"}) {
    const auto place = place_of(ours, these({ours}), kOurs);
    EXPECT_TRUE(place.here()) << ours;
    EXPECT_EQ(place.listen_at, these({ours}));
    EXPECT_EQ(place.why, listed(these({ours})) + " is an address of this machine");
  }
}

TEST(Hosting, A5_AnotherMachinesAddressDoesNotAndWhatWasConsideredIsSaid) {
  const auto place = place_of("10.0.0.2", these({"10.0.0.2"}), kOurs);
  EXPECT_FALSE(place.here());
  EXPECT_EQ(place.why, "none of 10.0.0.2 is an address of this machine, which has " + listed(kOurs));
}

TEST(Hosting, A3_ANameIsMatchedByItsAddresses) {
  const auto place = place_of("a.sub", these({"fd00::9", "10.0.0.1"}), kOurs);
  EXPECT_TRUE(place.here());
  EXPECT_EQ(listed(place.listen_at), "10.0.0.1");
}

TEST(Hosting, A4_B2_TheEndpointsOwnAddressIsGivenToWorkers) {
  const auto place = place_of("192.168.7.1", these({"192.168.7.1"}), kOurs);
  EXPECT_EQ(address_by(place, kOurs)->to_string(), "192.168.7.1");
  EXPECT_FALSE(address_by(place_of("10.0.0.2", these({"10.0.0.2"}), kOurs), kOurs));
}

TEST(Hosting, A15_LoopbackIsKnownAsSuch) {
  EXPECT_TRUE(place_of("127.0.0.1", these({"127.0.0.1"}), kOurs).loopback);
  EXPECT_TRUE(place_of("localhost", these({"::1", "127.0.0.1"}), kOurs).loopback);
  EXPECT_FALSE(place_of("10.0.0.1", these({"10.0.0.1"}), kOurs).loopback);
}

TEST(Hosting, AHostNameThatIsLoopbackAtHomeIsServedOnAllAddresses) {
  const auto place = place_of("n1", these({"127.0.1.1"}), kOurs);
  EXPECT_TRUE(place.here());
  EXPECT_TRUE(place.hidden_by_loopback);
  EXPECT_FALSE(place.loopback);
  EXPECT_TRUE(place.listen_at.front().is_unspecified());
  EXPECT_EQ(address_by(place, kOurs)->to_string(), "10.0.0.1");
}

TEST(Hosting, A1_AFlagDecides) {
  EXPECT_FALSE(place_of("10.0.0.1", these({"10.0.0.1"}), kOurs, false).here());
  const auto forwarded = place_of("203.0.113.1", these({"203.0.113.1"}), kOurs, true);
  EXPECT_TRUE(forwarded.listen_at.front().is_unspecified());
  EXPECT_TRUE(forwarded.foreign);
  EXPECT_FALSE(place_of("10.0.0.1", these({"10.0.0.1"}), kOurs, true).foreign);
}

TEST(Hosting, ALinkLocalAddressIsThatOfItsInterface) {
  EXPECT_TRUE(place_of("fe80::1", these({"fe80::1"}), kOurs).here());
  EXPECT_FALSE(place_of("fe80::1%3", these({"fe80::1%3"}), kOurs).here());
}

// Loopback leads to itself on every machine.
TEST(OwnAddress, IsLeftToTheConnectionWhereAnEndpointHasSeveralAddresses) {
  const auto own = [](const std::vector<Address>& its, const std::string& given = "") {
    Meeting meeting;
    meeting.local_addr = given;
    return own_address(meeting, place_of("head", its, kOurs, false), its, kOurs);
  };
  EXPECT_EQ(own(these({"127.0.0.9"})), "127.0.0.1");
  EXPECT_EQ(own(these({"127.0.0.9", "::1"})), "");
  EXPECT_EQ(own(these({"127.0.0.9", "::1"}), "10.0.0.7"), "10.0.0.7");
}

TEST(LocalAddresses, B3_NumericHostsAreNotLookedUp) {
  EXPECT_EQ(listed(*addresses_of("10.77.0.9")), "10.77.0.9");
  EXPECT_EQ(listed(*addresses_of("fd00::9")), "fd00::9");
}

TEST(LocalAddresses, B9_AnIPv4AddressInIPv6sSpellingIsThatAddress) {
  EXPECT_EQ(listed(*addresses_of("::ffff:10.77.0.9")), "10.77.0.9");
}

TEST(LocalAddresses, AForeignOneIsToldFromOurs) {
  EXPECT_FALSE(not_ours(boost::asio::ip::make_address("127.0.0.1")));
  const auto error = not_ours(boost::asio::ip::make_address("192.0.2.9"));
  ASSERT_TRUE(error);
  EXPECT_THAT(error->sentence(), HasSubstr("192.0.2.9: not an address of this machine, which has "));
}

TEST(LocalAddresses, LoopbackIsOneAndLeadsToItself) {
  EXPECT_THAT(listed(*local_addresses()), HasSubstr("127.0.0.1"));
  EXPECT_EQ(address_towards(boost::asio::ip::make_address("127.0.0.1"), 9)->to_string(), "127.0.0.1");
}

}  // namespace
}  // namespace muster::launcher
