// Finds a store server and what it speaks.
//
// Nothing in the protocol asks for a version, and a wrong guess may hurt: PyTorch up to 2.0 reads VALIDATE as
// the beginning of a SET, waits for the rest (its one thread, hence all its clients too) and allocates what
// the length says. So each greeting is made such that a server which misunderstands it closes the connection
// at once, unharmed:
//
//   greeting                               dialect C, 2.5+    C, 2.1 to 2.4      dialect A
//   VALIDATE, PING (ping_nonce_flag set)   the nonce          closes             closes: length over 2^63
//   VALIDATE, 4 x CANCEL_WAIT              01 01 01 01        01 01 01 01        closes: length over 2^59
//   GETNUMKEYS of dialect A                closes             closes             8 bytes
//
// They are tried in this order, each on a connection of its own, as long as the server closes. (Against a
// muster server the first one answers.)
#pragma once

#include "base/endpoint.hpp"
#include "rendezvous/store/client_options.hpp"
#include "rendezvous/store/client_socket.hpp"

namespace muster::rendezvous {

enum class StoreGreeting { none, c_with_ping, c_without_ping, a };

struct StoreGreeted {
  StoreSocket socket;
  StoreGreeting greeting = StoreGreeting::none;  ///< the one that was answered
};

/// What our PINGs carry: the process id, marked.
std::uint32_t ping_nonce();

/// Tries until `deadline`, with growing, random pauses. `only`: this greeting and no other (to connect
/// again); none: those that `dialect` allows. Throws StoreTimeout with the last try's cause.
StoreGreeted greet_store(const Endpoint& server, StoreDialect dialect, StoreGreeting only,
                         const StoreDeadline& deadline);

}  // namespace muster::rendezvous
