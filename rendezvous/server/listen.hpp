// Listening sockets for an endpoint: on its addresses and on no others.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <vector>

#include "base/endpoint.hpp"
#include "base/error.hpp"

namespace muster::rendezvous {

using TcpAcceptor =
    boost::asio::basic_socket_acceptor<boost::asio::ip::tcp, boost::asio::io_context::executor_type>;

/// One for each address that the host name has here (a numeric one is not looked up); at least one, or an
/// error that names every address that was tried, its errno, and who holds the port. Port 0: the kernel
/// chooses, once for all of them.
Result<std::vector<TcpAcceptor>> listen_on(boost::asio::io_context& io, const Endpoint& endpoint);

/// Sockets that whoever started this process bound and put into the listening state. They are ours from here
/// on, also after an error.
Result<std::vector<TcpAcceptor>> take_listeners(boost::asio::io_context& io, const std::vector<int>& fds);

}  // namespace muster::rendezvous
