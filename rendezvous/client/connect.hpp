// A TCP connection to an endpoint given by name or by number.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "base/endpoint.hpp"
#include "base/error.hpp"
#include "base/time.hpp"
#include "rendezvous/protocol/connection.hpp"

namespace muster::rendezvous {

struct ConnectAttempt;

/// Lets the caller end a connect_to() that it no longer wants.
class ConnectStop {
 public:
  void stop();

 private:
  friend struct ConnectAttempt;
  bool stopped_ = false;
  ConnectAttempt* attempt_ = nullptr;  ///< the one under way
};

/// Tries every address that the host has, of both families, each for at most `per_address`. A numeric host is
/// not looked up; a name is, at every call, since it may have moved. The error lists each address with its
/// errno.
boost::asio::awaitable<Result<TcpSocket>> connect_to(boost::asio::io_context& io, Endpoint endpoint,
                                                     Duration per_address, std::shared_ptr<ConnectStop> stop);

}  // namespace muster::rendezvous
