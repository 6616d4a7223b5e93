// One client of the server: its socket, what has come in, what has yet to go out.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <string>

#include "base/unique_fd.hpp"
#include "rendezvous/store/codec.hpp"
#include "rendezvous/store/value.hpp"
#include "rendezvous/store/waits.hpp"

namespace muster::rendezvous {

/// Small, since there may be tens of thousands: an idle client has no buffers of its own.
struct StoreSession {
  StoreConnectionId id = 0;
  UniqueFd fd;
  StoreDialect dialect = StoreDialect::undecided;
  bool held = false;      ///< has requests in `input` that must wait: for its own WAIT, or for `output` to go
  bool draining = false;  ///< the client has sent its last byte; closed once `output` is out
  std::uint32_t interest = 0;      ///< epoll events asked for
  std::size_t buffered_bytes = 0;  ///< of input and output, as last counted
  StoreScanner scanner;            ///< of the first request in `input`
  std::string input;               ///< what is not a whole request yet, or held
  StoreOutput output;              ///< what the socket did not take at once
  boost::asio::ip::tcp::endpoint peer;
};

}  // namespace muster::rendezvous
