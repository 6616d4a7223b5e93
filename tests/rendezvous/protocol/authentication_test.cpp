#include "rendezvous/protocol/authentication.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/support/temporary_folder.hpp"

namespace muster::rendezvous {
namespace {

class TokenFile : public testing::Test {
 protected:
  std::string file(const std::string& content, mode_t mode = 0600) {
    const auto path = folder_ + "/token";
    std::ofstream(path) << content;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  test::TemporaryFolder scratch_;
  const std::string folder_ = scratch_.path();
};

constexpr const char* kSecret = "0123456789abcdef0123456789abcdef";

TEST_F(TokenFile, WhiteSpaceAtTheEndIsNotPartOfIt) {
  const auto with = load_token(file(std::string(kSecret) + " \r\n"));
  ASSERT_TRUE(with) << with.error().sentence();
  EXPECT_EQ(with->warning, "");
  EXPECT_EQ(peer_proof(with->token, "hello", Nonce{}), peer_proof(Token(kSecret), "hello", Nonce{}));
}

TEST_F(TokenFile, ReadableByOthersIsWarnedOf) {
  const auto loaded = load_token(file(kSecret, 0644));
  ASSERT_TRUE(loaded);
  EXPECT_NE(loaded->warning.find("chmod 600"), std::string::npos);
}

TEST_F(TokenFile, WhatCannotBeATokenIsNamedWithoutShowingIt) {
  EXPECT_NE(load_token(folder_ + "/none").error().sentence().find("ENOENT"), std::string::npos);
  EXPECT_NE(load_token(folder_).error().sentence().find("not a regular file"), std::string::npos);
  const auto too_short = load_token(file("hunter2")).error().sentence();
  EXPECT_NE(too_short.find("shorter than 16"), std::string::npos);
  EXPECT_EQ(too_short.find("hunter2"), std::string::npos);
  EXPECT_NE(load_token(file(std::string(5000, 'x'))).error().sentence().find("longer"), std::string::npos);
}

TEST(Authentication, ProofsDependOnTokenTextNonceAndDirection) {
  const Token token(kSecret);
  Nonce nonce{};
  const auto proof = peer_proof(token, "hello", nonce);
  EXPECT_TRUE(equal(proof, peer_proof(token, "hello", nonce)));
  EXPECT_FALSE(equal(proof, daemon_proof(token, "hello", nonce)));
  EXPECT_FALSE(equal(proof, peer_proof(Token("another token of some length"), "hello", nonce)));
  EXPECT_FALSE(equal(proof, peer_proof(token, "hellp", nonce)));
  nonce[31] = 1;
  EXPECT_FALSE(equal(proof, peer_proof(token, "hello", nonce)));
}

// Computed with `openssl dgst -sha256 -mac HMAC`, so that another implementation can be checked against it.
TEST(Authentication, KnownAnswer) {
  const auto proof = peer_proof(Token("0123456789abcdef"), "hello", Nonce{});
  std::string hex;
  for (const char byte : proof) {
    constexpr const char* kDigits = "0123456789abcdef";
    hex += kDigits[(byte >> 4) & 15];
    hex += kDigits[byte & 15];
  }
  EXPECT_EQ(hex, "6bd62e613aa2c522703f779f1198e04d43854283c17c859c2f50218a1479c24d");
}

TEST(Authentication, NoncesDiffer) { EXPECT_NE(random_nonce(), random_nonce()); }

}  // namespace
}  // namespace muster::rendezvous
