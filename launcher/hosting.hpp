// Who hosts the rendezvous: decided by addresses, never by comparing names. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/local_addresses.hpp"

namespace muster::launcher {

/// What an endpoint's addresses mean for this machine.
struct Place {
  std::vector<Address> listen_at;  ///< the endpoint's addresses that this machine has; empty: not hosted here
  /// No other machine can reach it: numeric, or called localhost.
  bool loopback = false;
  /// A name that is a loopback address in this machine's own tables, and probably another for the rest of the
  /// world: listen_at is then every address, since the one that is meant is not known.
  bool hidden_by_loopback = false;
  /// is_host says that it is hosted here, and no address of the endpoint is this machine's: listen_at is every address.
  bool foreign = false;
  std::string why;  ///< "10.0.0.1 is an address of this machine"

  bool here() const { return !listen_at.empty(); }
};

/// `host` as the user gave it, `its` the addresses it has, `ours` those of this machine. `is_host` decides in
/// place of the addresses; a machine that is told to host an address it does not have listens everywhere.
Place place_of(const std::string& host, const std::vector<Address>& its, const std::vector<Address>& ours,
               std::optional<bool> is_host = {});

/// The address of this node that the others' workers connect to, if the place says it: where it is hosted,
/// the endpoint's own.
std::optional<Address> address_by(const Place& place, const std::vector<Address>& ours);

}  // namespace muster::launcher
