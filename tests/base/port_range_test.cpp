#include "base/port_range.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(PortRange, OnePortOrFirstToLast) {
  EXPECT_EQ(*parse_port_range("29501"), (PortRange{29501, 29501}));
  EXPECT_EQ(*parse_port_range("29501-29510"), (PortRange{29501, 29510}));
  EXPECT_EQ((PortRange{29501, 29510}).text(), "29501-29510");
  EXPECT_EQ((PortRange{5, 5}).text(), "5");
  EXPECT_TRUE(PortRange{}.any());
  for (const char* text : {"", "0", "0-5", "5-4", "5-", "-5", "65536", "1-65536", "1-2-3", "a", "5 - 6"})
    EXPECT_FALSE(parse_port_range(text)) << text;
}

}  // namespace
}  // namespace muster
