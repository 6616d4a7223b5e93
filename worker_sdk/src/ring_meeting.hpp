// How the neighbours of a ring find each other: each rank listens, and says in the store where and by which secret.
#pragma once

#include <string>

#include "worker_sdk/src/key_value_store.hpp"
#include "worker_sdk/src/mesh.hpp"
#include "worker_sdk/src/ring_link.hpp"

namespace muster::worker {

/// Whoever connects without the secret is not listened to. Throws CollectiveError that names the neighbour.
RingLink meet_neighbours(const MeshOptions& options, KeyValueStore& store, Deadline deadline);

/// The numeric address of a network interface, IPv4 before IPv6. Throws CollectiveError if it has none.
std::string address_of_interface(const std::string& name);

}  // namespace muster::worker
