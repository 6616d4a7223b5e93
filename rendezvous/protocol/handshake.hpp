// Both ends of the opening of a connection, without the connection: frames in, frames out. Who may speak
// comes before what is said: hello, challenge, proof; then the daemon decides and says welcome or refused.
//
// A side without a token sends proofs of zeros. A peer with a token never talks to a daemon without it, and
// the reverse; each is told why by the other's `refused`.
#pragma once

#include <optional>
#include <string>

#include "rendezvous/protocol/authentication.hpp"
#include "rendezvous/protocol/codec.hpp"

namespace muster::rendezvous {

/// The daemon's end. When `admitted`, the peer is who hello() says; whether it may join is the job's
/// business.
class DaemonHandshake {
 public:
  /// `token` may be null (no authentication); it must outlive this.
  DaemonHandshake(const Token* token, const Nonce& nonce) : token_(token), nonce_(nonce) {}

  struct Step {
    std::string reply;  ///< may be empty
    bool admitted = false;
    std::optional<Refused> refused;  ///< to be sent and logged; the connection is over
  };
  Step on_frame(const Frame& frame);

  const Hello& hello() const { return hello_; }

 private:
  Step on_hello(const Frame& frame);
  Step on_proof(const Frame& frame);

  const Token* token_;
  Nonce nonce_;
  Hello hello_;
  bool greeted_ = false;
  Mac expected_{};
};

/// The agent's or the operator's end.
class PeerHandshake {
 public:
  PeerHandshake(const Hello& hello, const Token* token);

  const std::string& first_frame() const { return hello_frame_; }

  struct Step {
    std::string reply;  ///< may be empty
    std::optional<Welcome> welcome;
    std::optional<Refused> refused;  ///< by the daemon, or by us; the connection is over
  };
  Step on_frame(const Frame& frame);

 private:
  Step on_challenge(const Frame& frame);

  std::string hello_frame_;
  const Token* token_;
  bool challenged_ = false;
};

}  // namespace muster::rendezvous
