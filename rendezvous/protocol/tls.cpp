#include "rendezvous/protocol/tls.hpp"

#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <array>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <cstring>

#include "rendezvous/protocol/codec.hpp"

namespace muster::rendezvous {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;

class Tls {
 public:
  explicit Tls(TlsSide the_side) : context(ssl::context::tlsv13), side(the_side) {}

  ssl::context context;
  TlsSide side;
};

namespace {

constexpr std::size_t kTlsReadBytesAtOnce = 4096;
constexpr const char* kNoTls = "wrong version";  // in OpenSSL's words for a peer that speaks something else

Error failure(const char* what, const std::string& path, const error_code& error) {
  return Error{std::string(what) + " " + path, error.message()};
}

Result<void> check_complete(const TlsFiles& files, TlsSide side) {
  if (files.certificate.empty() != files.key.empty())
    return Error{"TLS", files.key.empty() ? "a certificate without its key" : "a key without its certificate",
                 "name both (tls_cert and tls_key)"};
  if (side == TlsSide::daemon && files.certificate.empty())
    return Error{"TLS", "the daemon has no certificate to show", "name one (tls_cert and tls_key)"};
  if (side == TlsSide::peer && files.authority.empty())
    return Error{"TLS", "there is nothing to check the daemon's certificate against",
                 "name it (tls_ca, --tls-ca)"};
  return {};
}

Result<void> load(ssl::context& context, const TlsFiles& files) {
  error_code error;
  if (!files.certificate.empty()) {
    context.use_certificate_chain_file(files.certificate, error);
    if (error) return failure("TLS certificate", files.certificate, error);
    context.use_private_key_file(files.key, ssl::context::pem, error);
    if (error) return failure("TLS key", files.key, error);
    if (SSL_CTX_check_private_key(context.native_handle()) != 1)
      return Error{"TLS key " + files.key, "it is not that of the certificate " + files.certificate};
  }
  if (!files.authority.empty()) context.load_verify_file(files.authority, error);
  if (error) return failure("TLS authority", files.authority, error);
  return {};
}

std::string warning_about(const std::string& key) {
  struct stat status {};
  if (key.empty() || ::stat(key.c_str(), &status) != 0 || (status.st_mode & (S_IRWXG | S_IRWXO)) == 0)
    return "";
  return "TLS key " + key + " can be read or changed by others than its owner; chmod 600 it";
}

/// Whoever ends in the middle of it has agreed to nothing and refused nothing.
Connection::Ending ending_of_handshake(const error_code& error, TlsSide side, const std::string& distrust) {
  using Kind = Connection::Ending::Kind;
  const bool of_tls =
      error.category() == boost::asio::error::get_ssl_category() &&
      ERR_GET_REASON(static_cast<unsigned long>(error.value())) != SSL_R_UNEXPECTED_EOF_WHILE_READING;
  if (!of_tls) return {Kind::closed, "the TLS handshake failed: the peer closed the connection"};
  const bool hint = side == TlsSide::peer && error.message().find(kNoTls) != std::string::npos;
  return {Kind::not_secured, "the TLS handshake failed: " + error.message() +
                                 (distrust.empty() ? "" : ": " + distrust) +
                                 (hint ? "; it may not speak TLS" : "")};
}

std::string text_of(const GENERAL_NAME& name) {
  int kind = 0;
  const auto* value = static_cast<const ASN1_STRING*>(GENERAL_NAME_get0_value(&name, &kind));
  if (kind != GEN_DNS && kind != GEN_IPADD) return "";
  const auto size = static_cast<std::size_t>(ASN1_STRING_length(value));
  const auto* bytes = ASN1_STRING_get0_data(value);
  if (kind == GEN_DNS) return {reinterpret_cast<const char*>(bytes), size};
  boost::asio::ip::address_v4::bytes_type v4;
  boost::asio::ip::address_v6::bytes_type v6;
  if (size == v4.size()) {
    std::memcpy(v4.data(), bytes, size);
    return boost::asio::ip::address_v4(v4).to_string();
  }
  if (size != v6.size()) return "";
  std::memcpy(v6.data(), bytes, size);
  return boost::asio::ip::address_v6(v6).to_string();
}

/// "10.0.0.1, node1"; "nobody".
std::string names_in(X509* certificate) {
  const std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)),
      GENERAL_NAMES_free);
  std::string listed;
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i)
    if (const auto name = text_of(*sk_GENERAL_NAME_value(names.get(), i)); !name.empty())
      listed += (listed.empty() ? "" : ", ") + name;
  return listed.empty() ? "nobody (it has no subjectAltName)" : listed;
}

class TlsConnection : public Connection {
 public:
  TlsConnection(TcpSocket socket, std::string peer, std::shared_ptr<Tls> tls, const std::string& host)
      : Connection(std::move(peer)),
        tls_(std::move(tls)),
        host_(host.substr(0, host.find('%'))),
        stream_(std::move(socket), tls_->context) {
    error_code ignored;  // later without it (Nagle), but not wrong
    stream_.next_layer().set_option(boost::asio::ip::tcp::no_delay(true), ignored);
    const auto believe = [this](bool chain_is_good, ssl::verify_context& context) {
      return this->believe(chain_is_good, context);
    };
    stream_.set_verify_callback(believe, ignored);
  }

 private:
  std::shared_ptr<TlsConnection> self() {
    return std::static_pointer_cast<TlsConnection>(shared_from_this());
  }

  void read_some() override {
    if (!secured_) return shake_hands();
    stream_.async_read_some(boost::asio::buffer(in_),
                            [self = self()](const error_code& error, std::size_t size) {
                              if (error)
                                self->failed_to_read(error);
                              else
                                self->received({self->in_.data(), size});
                            });
  }

  /// Asked for each certificate of the chain, from the authority's down to the peer's own.
  bool believe(bool chain_is_good, ssl::verify_context& context) {
    X509_STORE_CTX* store = context.native_handle();
    const bool of_daemon = tls_->side == TlsSide::peer;
    if (!chain_is_good) {
      const int why = X509_STORE_CTX_get_error(store);
      distrust_ = std::string(of_daemon ? "the daemon's" : "the peer's") +
                  " certificate is not one of the named authority (tls_ca, --tls-ca) that is good now: " +
                  X509_verify_cert_error_string(why);
      return false;
    }
    if (!of_daemon || ssl::host_name_verification(host_)(true, context)) return true;
    distrust_ = "the daemon's certificate names " + names_in(X509_STORE_CTX_get_current_cert(store)) +
                ", and " + host_ + " was wanted";
    return false;
  }

  void shake_hands() {
    const auto role = tls_->side == TlsSide::daemon ? Stream::server : Stream::client;
    stream_.async_handshake(role, [self = self()](const error_code& error) {
      if (error) return self->failed_to_secure(ending_of_handshake(error, self->tls_->side, self->distrust_));
      self->secured_ = true;
      if (self->held_back_ != nullptr) self->write_all(*std::exchange(self->held_back_, nullptr));
      self->read_some();
    });
  }

  // A peer that speaks without TLS hears why in its own tongue: OpenSSL tells it nothing.
  void failed_to_secure(const Ending& ending) {
    if (tls_->side == TlsSide::daemon && ending.why.find(kNoTls) != std::string::npos) {
      const auto farewell = encode(DaemonMessage(
          Refused{RefusalCode::not_authenticated,
                  "this rendezvous speaks TLS: name the authority to trust (tls_ca, --tls-ca)"}));
      error_code ignored;  // it fits into an empty socket; who does not take it hears nothing
      stream_.next_layer().write_some(boost::asio::buffer(farewell), ignored);
    }
    ended(ending);
  }

  // A peer that refuses our certificate says so only now: in TLS 1.3 our side of the handshake is over first.
  void failed_to_read(const error_code& error) {
    if (error == ssl::error::stream_truncated) return failed(boost::asio::error::eof);
    if (error.category() == boost::asio::error::get_ssl_category())
      return ended({Ending::Kind::not_secured, "TLS: " + error.message()});
    failed(error);
  }

  void write_all(const std::string& out) override {
    if (!secured_) {
      held_back_ = &out;  // it stays what is in flight until it is written
      return;
    }
    boost::asio::async_write(stream_, boost::asio::buffer(out),
                             [self = self()](const error_code& error, std::size_t) {
                               if (error)
                                 self->failed(error);
                               else
                                 self->written();
                             });
  }

  // Without TLS's own farewell: it would wait for the peer's while a read is under way, and where a conversation
  // ends is said by the channel's messages.
  void half_close() override {
    error_code ignored;
    stream_.next_layer().shutdown(TcpSocket::shutdown_send, ignored);
  }

  void shut_down() override {
    error_code ignored;
    stream_.next_layer().shutdown(TcpSocket::shutdown_both, ignored);
    stream_.next_layer().close(ignored);
  }

  using Stream = ssl::stream<TcpSocket>;
  std::shared_ptr<Tls> tls_;
  std::string host_;      ///< whom the daemon's certificate has to name
  std::string distrust_;  ///< why the other side's certificate was not accepted
  Stream stream_;
  std::array<char, kTlsReadBytesAtOnce> in_;
  const std::string* held_back_ = nullptr;  ///< to be written once the handshake is over
  bool secured_ = false;
};

}  // namespace

Result<LoadedTls> load_tls(const TlsFiles& files, TlsSide side) {
  if (!files.any()) return LoadedTls{};
  if (auto complete = check_complete(files, side); !complete) return complete.error();
  auto tls = std::make_shared<Tls>(side);
  if (auto loaded = load(tls->context, files); !loaded) return loaded.error();
  const bool wants_certificate = !files.authority.empty();
  tls->context.set_verify_mode(wants_certificate ? ssl::verify_peer | ssl::verify_fail_if_no_peer_cert
                                                 : ssl::verify_none);
  return LoadedTls{std::move(tls), warning_about(files.key)};
}

std::shared_ptr<Connection> secured_connection(TcpSocket socket, std::string peer,
                                               const std::shared_ptr<Tls>& tls, const std::string& host) {
  if (!tls) return plain_connection(std::move(socket), std::move(peer));
  return std::make_shared<TlsConnection>(std::move(socket), std::move(peer), tls, host);
}

}  // namespace muster::rendezvous
