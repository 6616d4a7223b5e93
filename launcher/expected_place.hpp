// Where the nodes of a job would meet, as far as this machine can tell without binding, starting or sending anything.
#pragma once

#include <string>
#include <vector>

#include "launcher/hosting.hpp"
#include "launcher/rendezvous_options.hpp"

namespace muster::launcher {

/// This node's address for the others' workers: the given one, where the meeting is hosted the endpoint's own, else the
/// one that leads to the endpoint's only address. `its` and `ours` as for place_of. Empty: known only once connected.
std::string own_address(const Meeting& meeting, const Place& place, const std::vector<Address>& its,
                        const std::vector<Address>& ours);

struct ExpectedPlace {
  std::string address;  ///< this node's, for the others' workers; empty: not known
  bool here = false;    ///< the rendezvous is hosted on this machine
  bool loopback = false;
  std::string why;  ///< "10.0.0.1 is an address of this machine", or why nothing is known
};

/// Looks the endpoint's name up, if it is one.
ExpectedPlace expected_place(const Meeting& meeting);

}  // namespace muster::launcher
