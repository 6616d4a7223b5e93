#include "rendezvous/protocol/frame.hpp"

#include <gtest/gtest.h>

namespace muster::rendezvous {
namespace {

TEST(Frame, HeaderIsLengthThenType) {
  EXPECT_EQ(frame_bytes(FrameType::leave, "ab"), std::string("\x02\0\0\0\x17"
                                                             "ab",
                                                             7));
}

TEST(Frame, ComesWholeHoweverTheStreamIsCut) {
  const auto stream = frame_bytes(FrameType::leave, "hello") + frame_bytes(FrameType::heartbeat, "") +
                      frame_bytes(FrameType::progress, std::string(3000, 'x'));
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    FrameReader reader(kMaxPayloadBytes);
    std::string seen;
    for (const auto part : {std::string_view(stream).substr(0, cut), std::string_view(stream).substr(cut)}) {
      reader.feed(part);
      while (const auto frame = reader.next()) seen += frame_bytes(frame->type, frame->payload);
    }
    ASSERT_EQ(seen, stream) << "cut at " << cut;
    ASSERT_EQ(reader.held_bytes(), 0u);
  }
}

TEST(Frame, ByteByByte) {
  const auto stream = frame_bytes(FrameType::leave, "hello") + frame_bytes(FrameType::leave, "you");
  FrameReader reader(kMaxPayloadBytes);
  int frames = 0;
  for (const char byte : stream) {
    reader.feed({&byte, 1});
    while (reader.next()) ++frames;
  }
  EXPECT_EQ(frames, 2);
}

TEST(Frame, TooLongIsSeenFromTheHeaderAlone) {
  FrameReader reader(100);
  reader.feed(std::string_view("\x65\0\0\0\x17", 5));
  EXPECT_FALSE(reader.next());
  EXPECT_EQ(reader.too_long(), 101u);
  reader.feed(frame_bytes(FrameType::heartbeat, ""));
  EXPECT_FALSE(reader.next()) << "a stream that lost its frames is not read any further";
}

TEST(Frame, WhatAnotherProtocolSendsIsTooLong) {
  FrameReader reader(kMaxHandshakePayloadBytes);
  reader.feed("GET / HTTP/1.1\r\n");
  EXPECT_FALSE(reader.next());
  EXPECT_TRUE(reader.too_long());
}

}  // namespace
}  // namespace muster::rendezvous
