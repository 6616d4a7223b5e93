// Which files TLS is made of.
#pragma once

#include <array>
#include <string>

namespace muster::rendezvous {

/// Variables that name the files of a token and of TLS. One that is set and empty is a mistake (a script's variable that
/// was not set), and not the wish to go without.
inline constexpr std::array kFileVariables = {"MUSTER_TOKEN_FILE", "MUSTER_TLS_CERT", "MUSTER_TLS_KEY",
                                              "MUSTER_TLS_CA"};

/// Paths of PEM files; empty: not given. With none there is no TLS.
struct TlsFiles {
  std::string certificate;  ///< ours, then those that lead to the authority
  std::string key;          ///< of our certificate
  std::string authority;    ///< whose certificates we trust

  bool any() const { return !certificate.empty() || !key.empty() || !authority.empty(); }
};

}  // namespace muster::rendezvous
