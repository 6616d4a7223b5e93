#include "rendezvous/protocol/wire.hpp"

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

TEST(Wire, NumbersAreLittleEndianInTwosComplement) {
  WireWriter out;
  out.u16(0x0102);
  out.u32(0x01020304);
  out.i32(-2);
  out.u64(1);
  EXPECT_EQ(out.bytes(), std::string("\x02\x01"
                                     "\x04\x03\x02\x01"
                                     "\xfe\xff\xff\xff"
                                     "\x01\0\0\0\0\0\0\0",
                                     18));
  WireReader in(out.bytes());
  std::uint16_t a = 0;
  std::uint32_t b = 0;
  std::int32_t c = 0;
  std::uint64_t d = 0;
  in.u16(a);
  in.u32(b);
  in.i32(c);
  in.u64(d);
  EXPECT_TRUE(in.finished());
  EXPECT_EQ(a, 0x0102);
  EXPECT_EQ(b, 0x01020304u);
  EXPECT_EQ(c, -2);
  EXPECT_EQ(d, 1u);
}

TEST(Wire, ALengthIsCheckedBeforeAnythingIsAllocated) {
  WireReader huge(std::string_view("\xff\xff\xff\xff", 4));
  std::string text;
  huge.text(text);
  EXPECT_EQ(huge.wrong(), "at byte 4: a string of 4294967295 bytes, 65536 is the limit");
  WireReader missing(std::string_view("\x09\0\0\0abc", 7));
  missing.text(text);
  EXPECT_EQ(missing.wrong(), "at byte 4: 9 more bytes expected, 3 are left");
}

TEST(Wire, TheFirstFaultStaysAndNothingIsReadAfterIt) {
  WireReader in(std::string_view("\x02\x01\x01", 3));
  bool flag = false;
  in.boolean(flag);
  const auto first = in.wrong();
  EXPECT_NE(first.find("only 0 and 1"), std::string::npos);
  std::uint8_t next = 7;
  in.u8(next);
  EXPECT_EQ(next, 0);
  EXPECT_FALSE(in.finished());
  EXPECT_EQ(in.wrong(), first);
}

TEST(Wire, LeftOversAreAFault) {
  WireReader in("ab");
  std::uint8_t byte = 0;
  in.u8(byte);
  EXPECT_FALSE(in.finished());
  EXPECT_EQ(in.wrong(), "at byte 1: 1 bytes too many");
}

TEST(Wire, TextsAreCutToTheirLimit) {
  WireWriter out;
  out.line(std::string(kMaxLineBytes + 5, 'x'));
  WireReader in(out.bytes());
  std::string line;
  in.line(line);
  EXPECT_TRUE(in.finished()) << in.wrong();
  EXPECT_EQ(line.size(), kMaxLineBytes);
}

TEST(Wire, NamesCannotForgeLogLines) {
  EXPECT_TRUE(valid_name("n1"));
  EXPECT_TRUE(valid_name("knoten-\xc3\xa4"));
  EXPECT_FALSE(valid_name(""));
  EXPECT_FALSE(valid_name("a\nmuster: all is well"));
  EXPECT_FALSE(valid_name("a\x7f"));
  EXPECT_FALSE(valid_name(std::string(257, 'a')));
}

}  // namespace
}  // namespace muster::rendezvous
