// A musterd of our own at the rendezvous endpoint: bound here, run in a process and session of its own, so
// that losing this node's agent is like losing any other, and that Ctrl-C does not reach it.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/time.hpp"
#include "base/unique_fd.hpp"
#include "launcher/local_addresses.hpp"
#include "rendezvous/protocol/tls_files.hpp"

namespace muster::launcher {

using Listeners = std::optional<std::vector<UniqueFd>>;

/// Sockets that listen at these addresses, as many of them as can be had ("::" serves "0.0.0.0" too).
/// Nothing: another process listens there already, so there is a host.
Result<Listeners> listen_unless_taken(const std::vector<Address>& addresses, std::uint16_t port);

struct DaemonCommand {
  std::filesystem::path musterd;
  Endpoint endpoint;               ///< for its log
  std::filesystem::path log_file;  ///< empty: none
  std::string token_file;          ///< empty: none
  rendezvous::TlsFiles tls;
  Duration idle_limit = std::chrono::minutes(10);  ///< it leaves when no job came by then
};

/// Hands the sockets over. It leaves by itself when its jobs are over and nobody is connected.
Result<pid_t> start_daemon(const DaemonCommand& command, const std::vector<UniqueFd>& listeners);

/// Beside this very program.
Result<std::filesystem::path> musterd_path();

}  // namespace muster::launcher
