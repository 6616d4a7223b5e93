// Where the nodes of a job meet: torchrun's --rdzv-... and --master-... options, and what they mean together.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/endpoint.hpp"
#include "base/error.hpp"
#include "base/time.hpp"
#include "rendezvous/core/policy.hpp"
#include "rendezvous/protocol/tls_files.hpp"

namespace muster::launcher {

/// As typed; an empty text or nothing: not given.
struct RendezvousOptions {
  std::string backend;                      ///< "static" or "c10d"
  std::string endpoint;                     ///< HOST[:PORT]
  std::map<std::string, std::string> conf;  ///< keys of --rdzv-conf
  std::optional<int> node_rank;
  std::string master_addr;
  std::optional<int> master_port;
  std::string local_addr;
};

/// The times of a job that --rdzv-conf may change; nothing: the default.
struct RendezvousTimes {
  std::optional<Duration> join, last_call, closed_grace, broken_grace, resume_window, settle, first_step,
      exit_barrier;
};

/// For a job of more than one node.
struct Meeting {
  Endpoint endpoint;
  std::optional<int> node_rank;  ///< a wish
  std::optional<bool> is_host;   ///< --rdzv-conf is_host=...; nothing: found out by addresses
  std::string local_addr;        ///< empty: found out
  std::string token_file;        ///< empty: none
  rendezvous::TlsFiles tls;      ///< for the channel, and for a daemon that is started here
  RendezvousTimes times;
  rendezvous::WindowedBudget membership_changes = rendezvous::JobPolicy().membership_changes;
  bool allow_chaos = false;               ///< operators may rehearse faults
  std::vector<std::string> unknown_keys;  ///< of --rdzv-conf: without effect
};

constexpr std::uint16_t kDefaultRendezvousPort = 29400;  // torchrun's, for c10d
constexpr std::uint16_t kDefaultMasterPort = 29500;      // torchrun's, for static

/// "k=v,k=v" into `conf`; a key that comes again replaces what it had. Blanks around keys and values go, and so does
/// a pair of quotes around the whole.
Result<void> parse_rendezvous_conf(std::map<std::string, std::string>& conf, const std::string& text);

/// Takes restart_window out of `conf`: so many restarts after failures in such a time, within --max-restarts. One node
/// understands it as well as many.
Result<std::optional<rendezvous::WindowedBudget>> take_restart_window(
    std::map<std::string, std::string>& conf);

/// The error is the user's.
Result<Meeting> make_meeting(const RendezvousOptions& options, int min_nodes, int max_nodes);

}  // namespace muster::launcher
