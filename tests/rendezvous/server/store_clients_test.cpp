#include "rendezvous/server/store_clients.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/protocol/channel_messages.hpp"

namespace muster::rendezvous {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

NodeAddresses node(const std::string& address) { return {address, address, {address}}; }

TEST(StoreClients, C7_AreAllAddressesOfAllNodes) {
  const NodeAddresses two_networks{"10.0.0.1", "10.0.0.1", {"10.0.0.1", "10.1.0.1", "fd00::1"}};
  EXPECT_THAT(store_clients({two_networks, node("10.0.0.2")}),
              ElementsAre("10.0.0.1", "10.0.0.2", "10.1.0.1", "fd00::1"));
}

TEST(StoreClients, C7_AreAnyWhenANodeDoesNotSayWhatItHas) {
  EXPECT_THAT(store_clients({node("10.0.0.1"), {"10.0.0.2", "10.0.0.2", {}}}), IsEmpty());
}

TEST(StoreClients, C7_AreAnyWhenThereIsAnAddressTranslation) {
  EXPECT_THAT(store_clients({node("10.0.0.1"), {"172.17.0.2", "10.0.0.2", {"172.17.0.2"}}}), IsEmpty())
      << "the daemon sees another address than the node has";
  EXPECT_THAT(store_clients({node("10.0.0.1"), {"10.0.0.2", "172.17.0.2", {"172.17.0.2"}}}), IsEmpty())
      << "it is reached at another address than it has";
}

TEST(StoreClients, C7_LoopbackIsEverybodysOwn) {
  EXPECT_THAT(store_clients({{"127.0.0.1", "127.0.0.1", {"10.0.0.1"}}, {"::1", "127.0.0.3", {"10.0.0.1"}}}),
              ElementsAre("10.0.0.1"));
}

TEST(StoreClients, C7_OneAddressIsOneHoweverItIsWritten) {
  const NodeAddresses odd{"fe80::1%eth0", "::ffff:10.0.0.1", {"10.0.0.1", "FE80:0::1", "::ffff:10.0.0.1"}};
  EXPECT_THAT(store_clients({odd}), ElementsAre("10.0.0.1", "fe80::1"));
}

TEST(StoreClients, C7_AreAnyWhenTheyAreTooManyForAMessage) {
  std::vector<NodeAddresses> nodes;
  for (std::size_t i = 0; i <= kMaxStoreClients; ++i)
    nodes.push_back(node("10." + std::to_string(i >> 16) + "." + std::to_string(i >> 8 & 255) + "." +
                         std::to_string(i & 255)));
  EXPECT_THAT(store_clients(nodes), IsEmpty());
  nodes.pop_back();
  EXPECT_EQ(store_clients(nodes).size(), kMaxStoreClients);
}

}  // namespace
}  // namespace muster::rendezvous
