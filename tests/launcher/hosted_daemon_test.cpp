#include "launcher/hosted_daemon.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <clocale>
#include <cstdio>

namespace muster::launcher {
namespace {

std::uint16_t port_of(const UniqueFd& listener) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  EXPECT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  return ntohs(address.sin_port);
}

TEST(HostedDaemon, C4_ATakenPortIsKnownByItsNumberWhateverTheLanguage) {
  if (!std::setlocale(LC_ALL, "de_DE.UTF-8"))
    std::puts("no German here: only in the language of this machine");
  const std::vector<Address> loopback = {boost::asio::ip::make_address("127.0.0.1")};
  const auto first = listen_unless_taken(loopback, 0);
  ASSERT_TRUE(first && *first);
  const auto second = listen_unless_taken(loopback, port_of((*first)->front()));
  ASSERT_TRUE(second) << second.error().sentence();
  EXPECT_FALSE(*second) << "somebody listens there: that is no error";
  std::setlocale(LC_ALL, "C");
}

TEST(HostedDaemon, AnAddressThatIsNotOursIsAnErrorWithItsName) {
  const auto none = listen_unless_taken({boost::asio::ip::make_address("192.0.2.1")}, 29400);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().sentence().find("192.0.2.1:29400"), std::string::npos) << none.error().sentence();
  EXPECT_NE(none.error().sentence().find("EADDRNOTAVAIL"), std::string::npos) << none.error().sentence();
}

}  // namespace
}  // namespace muster::launcher
