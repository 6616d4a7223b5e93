// TLS 1.3 under the channel: nobody on the way reads or changes what goes over it. It comes below the channel's own
// handshake, so a token is asked for all the same, and bounded by the same time.
//
// A daemon shows its certificate; with an authority it wants one of its peers as well (mutual TLS), and whoever has
// none is turned away before it has said a word. An agent or operator checks the daemon's certificate against the
// authority and the host that it was told to connect to.
//
// A connection costs about 100 KB more of memory than a plain one at each end: OpenSSL's buffers.
#pragma once

#include <memory>
#include <string>

#include "base/error.hpp"
#include "rendezvous/protocol/connection.hpp"
#include "rendezvous/protocol/tls_files.hpp"

namespace muster::rendezvous {

/// Keys and certificates, loaded once for all connections of a process.
class Tls;

enum class TlsSide { daemon, peer };

struct LoadedTls {
  std::shared_ptr<Tls> tls;  ///< null: no files were named, no TLS
  std::string warning;       ///< others can read the key; empty if not
};

/// The error names the file, or the one that is missing for this side.
Result<LoadedTls> load_tls(const TlsFiles& files, TlsSide side);

/// Takes the socket over. Without `tls` the connection is plain. `host`: of the endpoint, which the daemon's
/// certificate has to name; a daemon gives none.
std::shared_ptr<Connection> secured_connection(TcpSocket socket, std::string peer,
                                               const std::shared_ptr<Tls>& tls, const std::string& host);

}  // namespace muster::rendezvous
