// Mutual proof that both ends hold the same token, without sending it.
//
//   daemon's proof = HMAC-SHA256(token, "muster daemon 1" 0x00, u32 length of hello frame, hello frame,
//   daemon nonce) peer's proof   = HMAC-SHA256(token, "muster peer 1"   0x00, u32 length of hello frame,
//   hello frame, daemon nonce)
//
// Both cover everything that the peer claimed (job, node, policy, its own nonce), so neither proof fits
// another connection, nor the other direction. The token itself never leaves its Token: it has no text form,
// is wiped when it goes, and comes from a file, so it is in no argument list, environment or log.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "rendezvous/protocol/channel_messages.hpp"

namespace muster::rendezvous {

class Token {
 public:
  explicit Token(std::string secret) : secret_(std::move(secret)) {}
  Token(const Token&) = default;
  Token(Token&&) noexcept = default;
  Token& operator=(const Token&) = default;
  Token& operator=(Token&&) noexcept = default;
  ~Token();

  /// For HTTP, where the secret itself is sent. In a time that does not depend on where they differ.
  bool matches(std::string_view other) const;

 private:
  friend Mac daemon_proof(const Token&, std::string_view, const Nonce&);
  friend Mac peer_proof(const Token&, std::string_view, const Nonce&);
  std::string secret_;
};

struct LoadedToken {
  Token token;
  std::string warning;  ///< others can read the file; empty if not
};

/// Of a program that takes kFileVariables: one of them is set and empty.
std::optional<Error> empty_file_variable();

/// The file's content without white space at its end: 16 to 4096 bytes. Warned of when anyone but its owner
/// may read it.
Result<LoadedToken> load_token(const std::string& path);

Mac daemon_proof(const Token& token, std::string_view hello_frame, const Nonce& daemon_nonce);
Mac peer_proof(const Token& token, std::string_view hello_frame, const Nonce& daemon_nonce);

/// In a time that does not depend on where they differ.
bool equal(const Mac& a, const Mac& b);

/// From the system's generator.
Nonce random_nonce();
std::uint64_t random_number();

}  // namespace muster::rendezvous
