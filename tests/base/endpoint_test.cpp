#include "base/endpoint.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(Endpoint, AllSpellingsOfHostAndPort) {
  EXPECT_EQ(*parse_endpoint("10.0.0.1:29400", 1), (Endpoint{"10.0.0.1", 29400}));
  EXPECT_EQ(*parse_endpoint("node1", 29400), (Endpoint{"node1", 29400}));
  EXPECT_EQ(*parse_endpoint("[fd00::1]:5000", 1), (Endpoint{"fd00::1", 5000}));
  EXPECT_EQ(*parse_endpoint("[::1]", 7), (Endpoint{"::1", 7}));
  EXPECT_EQ(*parse_endpoint("fe80::1%veth0", 7), (Endpoint{"fe80::1%veth0", 7}));
  EXPECT_EQ(*parse_endpoint(":0", 7), (Endpoint{"localhost", 0}));
}

TEST(Endpoint, B9_AnIPv4AddressInIPv6sSpellingIsThatAddress) {
  EXPECT_EQ(*parse_endpoint("[::ffff:127.0.0.1]:29491", 1), (Endpoint{"127.0.0.1", 29491}));
  EXPECT_EQ(*parse_endpoint("::FFFF:a00:1", 7), (Endpoint{"10.0.0.1", 7}));
  EXPECT_EQ(*parse_endpoint("[::127.0.0.1]", 7), (Endpoint{"::127.0.0.1", 7})) << "that is another one";
}

TEST(Endpoint, WhatIsWrongIsNamed) {
  EXPECT_NE(parse_endpoint("a:99999", 1).error().sentence().find("99999"), std::string::npos);
  EXPECT_NE(parse_endpoint("a:x", 1).error().sentence().find("'x'"), std::string::npos);
  EXPECT_TRUE(parse_endpoint("a:", 1).has_error());
  EXPECT_TRUE(parse_endpoint("[::1", 1).has_error());
  EXPECT_TRUE(parse_endpoint("[::1]x", 1).has_error());
  EXPECT_EQ(parse_endpoint("256.1.1.1:29400", 1).error().sentence(),
            "endpoint '256.1.1.1:29400': '256.1.1.1' is no IPv4 address");
  EXPECT_EQ(parse_endpoint("::1:29484", 1).error().sentence(),
            "endpoint '::1:29484': '::1:29484' is no IPv6 address; with a port it is written [ADDRESS]:PORT");
  EXPECT_TRUE(parse_endpoint("[node]:1", 1)) << "brackets around a name hurt nobody";
  EXPECT_TRUE(parse_endpoint("123.45", 1)) << "may be a name";
}

TEST(Endpoint, TextBracketsIPv6Only) {
  EXPECT_EQ((Endpoint{"fd00::1", 5}.text()), "[fd00::1]:5");
  EXPECT_EQ((Endpoint{"a", 5}.text()), "a:5");
}

TEST(ParseInteger, DigitsOnlyAndInRange) {
  EXPECT_EQ(*parse_integer("8", 1, 10), 8);
  for (const char* bad : {"", "abc", "1e9", "8x", " 8", "-1", "0", "11", "99999999999999999999"})
    EXPECT_TRUE(parse_integer(bad, 1, 10).has_error()) << bad;
}

}  // namespace
}  // namespace muster
