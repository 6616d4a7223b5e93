// The socket that workers connect to: bound once, before any worker starts.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "base/port_range.hpp"

namespace muster::rendezvous {

/// Binds and listens, with the longest backlog that the kernel allows, close-on-exec. `address` is numeric;
/// empty means every address of both families (of IPv4 alone where there is no IPv6). Port 0 lets the kernel
/// choose: ask the acceptor for its local_endpoint(). An error names address, port and errno.
Result<boost::asio::ip::tcp::acceptor> open_listener(const boost::asio::any_io_executor& executor,
                                                     const std::string& address, std::uint16_t port);

/// The same at the first port of the range that nobody has.
Result<boost::asio::ip::tcp::acceptor> open_listener(const boost::asio::any_io_executor& executor,
                                                     const std::string& address, const PortRange& ports);

/// A second handle of the same listening socket: a client is accepted by whichever asks first, and the socket
/// lives as long as one of them.
Result<boost::asio::ip::tcp::acceptor> share_listener(const boost::asio::any_io_executor& executor,
                                                      boost::asio::ip::tcp::acceptor& listener);

}  // namespace muster::rendezvous
