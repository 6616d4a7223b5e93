#include "rendezvous/protocol/authentication.hpp"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cassert>
#include <cerrno>
#include <stdexcept>

#include "base/unique_fd.hpp"
#include "rendezvous/protocol/tls_files.hpp"
#include "rendezvous/protocol/wire.hpp"

namespace muster::rendezvous {
namespace {

constexpr std::size_t kMinTokenBytes = 16;
constexpr std::size_t kMaxTokenBytes = 4096;

Mac hmac(std::string_view secret, std::string_view label, std::string_view hello_frame, const Nonce& nonce) {
  WireWriter text;
  text.raw(label);
  text.u8(0);
  text.u32(static_cast<std::uint32_t>(hello_frame.size()));
  text.raw(hello_frame);
  text.raw({nonce.data(), nonce.size()});
  Mac mac{};
  std::size_t written = 0;
  const auto* input = reinterpret_cast<const unsigned char*>(text.bytes().data());
  auto* output = reinterpret_cast<unsigned char*>(mac.data());
  if (!EVP_Q_mac(nullptr, "HMAC", nullptr, "SHA256", nullptr, secret.data(), secret.size(), input,
                 text.bytes().size(), output, mac.size(), &written) ||
      written != mac.size())
    throw std::runtime_error("OpenSSL cannot compute HMAC-SHA256");
  return mac;
}

void fill_random(void* out, int bytes) {
  if (RAND_bytes(static_cast<unsigned char*>(out), bytes) != 1)
    throw std::runtime_error("OpenSSL's random number generator failed");
}

}  // namespace

Token::~Token() { OPENSSL_cleanse(secret_.data(), secret_.size()); }

bool Token::matches(std::string_view other) const {
  return other.size() == secret_.size() && CRYPTO_memcmp(other.data(), secret_.data(), other.size()) == 0;
}

Mac daemon_proof(const Token& token, std::string_view hello_frame, const Nonce& daemon_nonce) {
  return hmac(token.secret_, "muster daemon 1", hello_frame, daemon_nonce);
}

Mac peer_proof(const Token& token, std::string_view hello_frame, const Nonce& daemon_nonce) {
  return hmac(token.secret_, "muster peer 1", hello_frame, daemon_nonce);
}

bool equal(const Mac& a, const Mac& b) { return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0; }

Nonce random_nonce() {
  Nonce nonce{};
  fill_random(nonce.data(), static_cast<int>(nonce.size()));
  return nonce;
}

std::uint64_t random_number() {
  std::uint64_t number = 0;
  fill_random(&number, sizeof number);
  return number;
}

std::optional<Error> empty_file_variable() {
  for (const char* name : kFileVariables) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value == '\0') return Error{name, "it is empty", "name a file, or unset it"};
  }
  return std::nullopt;
}

Result<LoadedToken> load_token(const std::string& path) {
  const auto what = "token file " + path;
  if (path.empty()) return Error{what, "it is empty", "name a file, or leave it out"};
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe is not waited for
  if (!file) return errno_error(what, errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return errno_error(what, errno);
  if (!S_ISREG(status.st_mode)) return Error{what, "not a regular file"};
  std::array<char, kMaxTokenBytes + 1> content;
  std::size_t size = 0;
  while (size < content.size()) {
    const auto got = ::read(file.get(), content.data() + size, content.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(what, errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  const bool too_long = size > kMaxTokenBytes;
  while (size > 0 && std::string_view(" \t\r\n").find(content[size - 1]) != std::string_view::npos) --size;
  LoadedToken loaded{Token(std::string(content.data(), size)), ""};
  OPENSSL_cleanse(content.data(), content.size());
  if (too_long) return Error{what, "longer than 4096 bytes"};
  if (size < kMinTokenBytes)
    return Error{what, "shorter than 16 bytes", "make one with: openssl rand -hex 32 > FILE"};
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    loaded.warning = what + " can be read or changed by others than its owner; chmod 600 it";
  return loaded;
}

}  // namespace muster::rendezvous
