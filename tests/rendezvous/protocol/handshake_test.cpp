#include "rendezvous/protocol/handshake.hpp"

#include <gtest/gtest.h>

#include "tests/rendezvous/protocol/samples.hpp"

namespace muster::rendezvous {
namespace {

const Token kToken("0123456789abcdef");
const Token kOther("another token, as long");

struct Ends {
  DaemonHandshake::Step daemon;
  PeerHandshake::Step peer;
};

template <class Handshake>
auto deliver(Handshake& to, const std::string& bytes) {
  FrameReader reader(kMaxHandshakePayloadBytes);
  reader.feed(bytes);
  return to.on_frame(*reader.next());
}

// Carries frames between the two until neither has anything to say.
Ends shake_hands(const Token* daemon_token, const Token* peer_token, const Hello& hello = sample_hello()) {
  DaemonHandshake daemon(daemon_token, Nonce{'d'});
  PeerHandshake peer(hello, peer_token);
  Ends ends;
  auto to_daemon = peer.first_frame();
  while (!to_daemon.empty()) {
    ends.daemon = deliver(daemon, to_daemon);
    to_daemon.clear();
    if (ends.daemon.refused && !ends.peer.refused)
      ends.peer = deliver(peer, encode(DaemonMessage(*ends.daemon.refused)));
    if (ends.daemon.admitted) ends.peer = deliver(peer, encode(Welcome{1, 2, 3}));
    if (ends.daemon.reply.empty()) continue;
    ends.peer = deliver(peer, ends.daemon.reply);
    to_daemon = ends.peer.reply;
  }
  return ends;
}

TEST(Handshake, SameTokenOrNoneOnBothSidesIsAdmitted) {
  for (const auto* token : {&kToken, static_cast<const Token*>(nullptr)}) {
    const auto ends = shake_hands(token, token);
    EXPECT_TRUE(ends.daemon.admitted);
    ASSERT_TRUE(ends.peer.welcome);
    EXPECT_EQ(*ends.peer.welcome, (Welcome{1, 2, 3}));
  }
}

TEST(Handshake, N1_WithoutTheTokenNobodyIsAdmittedAndBothSidesKnowWhy) {
  const struct {
    const Token *daemon, *peer;
    const char* reason;
  } cases[] = {{&kToken, nullptr, "wants a token, and the peer has none"},
               {&kToken, &kOther, "daemon's token is not this node's"},
               {nullptr, &kToken, "daemon has no token"}};
  for (const auto& c : cases) {
    const auto ends = shake_hands(c.daemon, c.peer);
    EXPECT_FALSE(ends.daemon.admitted);
    ASSERT_TRUE(ends.daemon.refused);
    ASSERT_TRUE(ends.peer.refused);
    EXPECT_EQ(ends.daemon.refused->code, RefusalCode::not_authenticated);
    EXPECT_NE(ends.daemon.refused->reason.find(c.reason), std::string::npos) << ends.daemon.refused->reason;
    EXPECT_NE(ends.peer.refused->reason.find(c.reason), std::string::npos) << ends.peer.refused->reason;
  }
}

TEST(Handshake, N1_AProofOfAnotherTokenIsRefusedByTheDaemonItself) {
  DaemonHandshake daemon(&kToken, Nonce{'d'});
  const auto hello = encode(sample_hello());
  EXPECT_FALSE(deliver(daemon, hello).refused);
  const auto step = deliver(daemon, encode(Proof{peer_proof(kOther, hello, Nonce{'d'})}));
  ASSERT_TRUE(step.refused);
  EXPECT_EQ(step.refused->code, RefusalCode::not_authenticated);
}

TEST(Handshake, N1_AProofOfAnotherConnectionIsRefused) {
  DaemonHandshake daemon(&kToken, Nonce{'d'});
  const auto hello = encode(sample_hello());
  EXPECT_FALSE(deliver(daemon, hello).refused);
  EXPECT_TRUE(deliver(daemon, encode(Proof{peer_proof(kToken, hello, Nonce{'e'})})).refused);
}

TEST(Handshake, NothingComesBeforeItsTurn) {
  DaemonHandshake no_hello(nullptr, Nonce{});
  EXPECT_EQ(deliver(no_hello, encode(AgentMessage(Join{.offer = sample_offer()}))).refused->code,
            RefusalCode::bad_magic);
  DaemonHandshake no_proof(nullptr, Nonce{});
  EXPECT_FALSE(deliver(no_proof, encode(sample_hello())).refused);
  EXPECT_EQ(deliver(no_proof, encode(AgentMessage(Join{.offer = sample_offer()}))).refused->code,
            RefusalCode::malformed);
  PeerHandshake peer(sample_hello(), nullptr);
  EXPECT_TRUE(deliver(peer, encode(Welcome{})).refused);
}

}  // namespace
}  // namespace muster::rendezvous
