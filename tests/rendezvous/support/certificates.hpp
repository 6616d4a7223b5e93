// Keys and certificates for tests, made when they are needed.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

#include "rendezvous/protocol/tls_files.hpp"

namespace muster::rendezvous {

/// An authority and what it has signed, as files in `folder`.
class Authority {
 public:
  explicit Authority(std::string folder) : folder_(std::move(folder)), key_(new_key()) {
    std::filesystem::create_directories(folder_);
    certificate_ = new_certificate(std::filesystem::path(folder_).filename(), "", *key_);
    write(path("ca"), *certificate_);
  }

  /// A certificate that is good for `host`, as "IP:127.0.0.1" or "DNS:n1".
  TlsFiles sign(const std::string& name, const std::string& host) {
    const Key key(new_key());
    write(path(name), *new_certificate(name, host, *key));
    File file(std::fopen((folder_ + "/" + name + ".key").c_str(), "w"));
    hold(file && PEM_write_PrivateKey(file.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr));
    file.reset();
    std::filesystem::permissions(folder_ + "/" + name + ".key", std::filesystem::perms::owner_read);
    return {path(name), folder_ + "/" + name + ".key", path("ca")};
  }

  TlsFiles authority_only() const { return {"", "", path("ca")}; }

 private:
  template <auto Free>
  struct Freeing {
    void operator()(auto* thing) const { Free(thing); }
  };
  using Key = std::unique_ptr<EVP_PKEY, Freeing<EVP_PKEY_free>>;
  using Certificate = std::unique_ptr<X509, Freeing<X509_free>>;
  using Extension = std::unique_ptr<X509_EXTENSION, Freeing<X509_EXTENSION_free>>;
  using File = std::unique_ptr<std::FILE, Freeing<std::fclose>>;

  static void hold(bool done) {
    if (!done) throw std::runtime_error("OpenSSL cannot make a certificate");
  }
  static Key new_key() {
    Key key(EVP_EC_gen("P-256"));
    hold(key != nullptr);
    return key;
  }
  std::string path(const std::string& name) const { return folder_ + "/" + name + ".pem"; }

  Certificate new_certificate(const std::string& name, const std::string& host, EVP_PKEY& key) {
    Certificate made(X509_new());
    hold(X509_set_version(made.get(), 2) && ASN1_INTEGER_set(X509_get_serialNumber(made.get()), ++serial_) &&
         X509_gmtime_adj(X509_getm_notBefore(made.get()), -3600) &&
         X509_gmtime_adj(X509_getm_notAfter(made.get()), 24 * 3600) && X509_set_pubkey(made.get(), &key));
    auto* subject = X509_get_subject_name(made.get());
    hold(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                                    reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0));
    auto* issuer = certificate_ ? X509_get_subject_name(certificate_.get()) : subject;
    hold(X509_set_issuer_name(made.get(), issuer));
    if (!certificate_) extend(*made, NID_basic_constraints, "critical,CA:TRUE");
    if (!host.empty()) extend(*made, NID_subject_alt_name, host);
    hold(X509_sign(made.get(), key_.get(), EVP_sha256()) > 0);
    return made;
  }

  static void extend(X509& certificate, int what, const std::string& value) {
    const Extension extension(X509V3_EXT_conf_nid(nullptr, nullptr, what, value.c_str()));
    hold(extension && X509_add_ext(&certificate, extension.get(), -1));
  }

  static void write(const std::string& path, X509& certificate) {
    const File file(std::fopen(path.c_str(), "w"));
    hold(file && PEM_write_X509(file.get(), &certificate));
  }

  std::string folder_;
  Key key_;
  Certificate certificate_;
  long serial_ = 0;
};

}  // namespace muster::rendezvous
