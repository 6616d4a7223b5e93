#include "agent/served_stores.hpp"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace muster::agent {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using namespace std::chrono_literals;

class ServedStoresTest : public ::testing::Test {
 protected:
  boost::system::error_code connect(std::uint16_t port) {
    boost::system::error_code error;
    client.close(error);
    client.connect({asio::ip::make_address("127.0.0.1"), port}, error);
    return error;
  }

  asio::io_context io{1};
  tcp::socket client{io};
  ServedStores stores{io.get_executor(), "127.0.0.1", nullptr};
};

TEST_F(ServedStoresTest, EachStoreListensOnItsOwnPortUntilItIsClosed) {
  const auto first = stores.open(1);
  const auto second = stores.open(2);
  ASSERT_TRUE(first && second);
  EXPECT_NE(*first, *second);
  EXPECT_FALSE(connect(*first));
  EXPECT_FALSE(connect(*second));
  stores.close(1);
  EXPECT_EQ(connect(*first), asio::error::connection_refused);
  EXPECT_FALSE(connect(*second));
}

TEST_F(ServedStoresTest, AStoreIsUsedOnceSomebodyHasConnected) {
  const auto port = stores.open(1);
  ASSERT_TRUE(port);
  EXPECT_FALSE(stores.used(1));
  ASSERT_FALSE(connect(*port));
  const auto deadline = std::chrono::steady_clock::now() + 5s;
  while (!stores.used(1) && std::chrono::steady_clock::now() < deadline) io.run_one_for(10ms);
  EXPECT_TRUE(stores.used(1));
  EXPECT_FALSE(stores.used(2));
}

TEST_F(ServedStoresTest, AnAddressThatIsNotOursIsAnErrorWithItsName) {
  ServedStores elsewhere(io.get_executor(), "192.0.2.1", nullptr);
  const auto port = elsewhere.open(1);
  ASSERT_FALSE(port);
  EXPECT_NE(port.error().sentence().find("192.0.2.1"), std::string::npos);
}

}  // namespace
}  // namespace muster::agent
