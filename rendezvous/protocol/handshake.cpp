#include "rendezvous/protocol/handshake.hpp"

namespace muster::rendezvous {

DaemonHandshake::Step DaemonHandshake::on_frame(const Frame& frame) {
  if (frame.type == FrameType::refused) {
    const auto message = decode_daemon_message(frame);
    const auto why = message ? std::get<Refused>(*message).reason : message.error().sentence();
    return {"", false, Refused{RefusalCode::not_authenticated, "the peer refused this daemon: " + why}};
  }
  return greeted_ ? on_proof(frame) : on_hello(frame);
}

DaemonHandshake::Step DaemonHandshake::on_hello(const Frame& frame) {
  auto decoded = decode_hello(frame);
  if (auto* refused = std::get_if<Refused>(&decoded)) return {"", false, std::move(*refused)};
  hello_ = std::move(std::get<Hello>(decoded));
  greeted_ = true;
  Challenge challenge{nonce_, token_ != nullptr, {}};
  if (token_ != nullptr) {
    const auto hello_frame = frame_bytes(frame.type, frame.payload);
    challenge.proof = daemon_proof(*token_, hello_frame, nonce_);
    expected_ = peer_proof(*token_, hello_frame, nonce_);
  }
  return {encode(challenge), false, std::nullopt};
}

DaemonHandshake::Step DaemonHandshake::on_proof(const Frame& frame) {
  const auto proof = decode<Proof>(frame);
  if (!proof) return {"", false, Refused{RefusalCode::malformed, proof.error().sentence()}};
  if (token_ == nullptr || equal(proof->proof, expected_)) return {"", true, std::nullopt};
  const bool none = equal(proof->proof, Mac{});
  return {"", false,
          Refused{RefusalCode::not_authenticated, none ? "this daemon wants a token, and the peer has none"
                                                       : "the peer's token is not this daemon's"}};
}

PeerHandshake::PeerHandshake(const Hello& hello, const Token* token)
    : hello_frame_(encode(hello)), token_(token) {}

PeerHandshake::Step PeerHandshake::on_frame(const Frame& frame) {
  if (frame.type == FrameType::refused) {
    const auto message = decode_daemon_message(frame);
    if (!message) return {"", std::nullopt, Refused{RefusalCode::malformed, message.error().sentence()}};
    return {"", std::nullopt, std::get<Refused>(*message)};
  }
  if (!challenged_) return on_challenge(frame);
  const auto welcome = decode<Welcome>(frame);
  if (!welcome) return {"", std::nullopt, Refused{RefusalCode::malformed, welcome.error().sentence()}};
  return {"", *welcome, std::nullopt};
}

PeerHandshake::Step PeerHandshake::on_challenge(const Frame& frame) {
  const auto challenge = decode<Challenge>(frame);
  if (!challenge)
    return {"", std::nullopt,
            Refused{RefusalCode::bad_magic, "what answers there is no muster rendezvous of this version"}};
  challenged_ = true;
  if (token_ == nullptr) return {encode(Proof{}), std::nullopt, std::nullopt};
  std::optional<Refused> refused;
  if (!challenge->token_required)
    refused = Refused{RefusalCode::not_authenticated, "the daemon has no token, and this node was given one"};
  else if (!equal(challenge->proof, daemon_proof(*token_, hello_frame_, challenge->nonce)))
    refused = Refused{RefusalCode::not_authenticated, "the daemon's token is not this node's"};
  if (refused) return {encode(DaemonMessage(*refused)), std::nullopt, refused};
  return {encode(Proof{peer_proof(*token_, hello_frame_, challenge->nonce)}), std::nullopt, std::nullopt};
}

}  // namespace muster::rendezvous
