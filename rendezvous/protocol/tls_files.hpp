// Which files TLS is made of.
#pragma once

#include <string>

namespace muster::rendezvous {

/// Paths of PEM files; empty: not given. With none there is no TLS.
struct TlsFiles {
  std::string certificate;  ///< ours, then those that lead to the authority
  std::string key;          ///< of our certificate
  std::string authority;    ///< whose certificates we trust

  bool any() const { return !certificate.empty() || !key.empty() || !authority.empty(); }
};

}  // namespace muster::rendezvous
