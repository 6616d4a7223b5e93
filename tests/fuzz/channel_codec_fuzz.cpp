// Feeds arbitrary bytes to the channel as a stream, the way a socket would: cut into frames, then to every
// decoder. What a decoder accepts must encode to the bytes it came from.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "rendezvous/protocol/handshake.hpp"

namespace {

using namespace muster::rendezvous;

void require(bool holds) {
  if (!holds) std::abort();
}

void decode_all(const Frame& frame) {
  const auto bytes = frame_bytes(frame.type, frame.payload);
  if (const auto message = decode_agent_message(frame)) require(encode(*message) == bytes);
  if (const auto message = decode_daemon_message(frame)) require(encode(*message) == bytes);
  if (const auto own = decode<OwnAddresses>(frame)) require(encode(*own) == bytes);
  if (const auto clients = decode<StoreClients>(frame)) require(encode(*clients) == bytes);
  if (const auto request = decode<OperatorRequest>(frame)) require(encode(*request) == bytes);
  if (const auto reply = decode<OperatorReply>(frame)) require(encode(*reply) == bytes);
  const auto hello = decode_hello(frame);
  if (const auto* accepted = std::get_if<Hello>(&hello)) require(encode(*accepted) == bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  static const Token token("0123456789abcdef");
  FrameReader reader(kMaxHandshakePayloadBytes);
  DaemonHandshake daemon(&token, Nonce{});
  PeerHandshake peer(Hello{PeerRole::agent, "job", "node", "", {}, {}}, &token);
  // The first byte says how the rest is cut, so that frames arrive in pieces too.
  const std::size_t piece = size == 0 || data[0] == 0 ? size : data[0];
  for (std::size_t at = 1; at < size; at += piece) {
    reader.feed(input.substr(at, piece));
    while (const auto frame = reader.next()) {
      decode_all(*frame);
      require(!daemon.on_frame(*frame).admitted);
      require(!peer.on_frame(*frame).welcome || frame->type == FrameType::welcome);
    }
    require(reader.held_bytes() <= size);
  }
  return 0;
}
