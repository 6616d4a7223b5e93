#include "rendezvous/server/listen.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include "base/bare_address.hpp"
#include "base/port_holder.hpp"
#include "base/unique_fd.hpp"
#include "rendezvous/protocol/connection.hpp"

namespace muster::rendezvous {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Tcp = asio::ip::tcp;

Result<std::vector<Tcp::endpoint>> addresses_of(asio::io_context& io, const Endpoint& endpoint) {
  error_code error;
  const auto numeric = asio::ip::make_address(endpoint.host, error);
  if (!error) return std::vector<Tcp::endpoint>{{numeric, endpoint.port}};
  const auto results =
      Tcp::resolver(io).resolve(endpoint.host, std::to_string(endpoint.port),
                                Tcp::resolver::numeric_service | Tcp::resolver::passive, error);
  if (error) return Error{endpoint.text(), "the name cannot be looked up: " + error.message()};
  std::vector<Tcp::endpoint> addresses;
  for (const auto& result : results)
    addresses.emplace_back(unmapped(result.endpoint().address()), result.endpoint().port());
  return addresses;
}

Result<TcpAcceptor> listen_at(asio::io_context& io, const Tcp::endpoint& address) {
  TcpAcceptor acceptor(io);
  error_code error;
  acceptor.open(address.protocol(), error);
  // A port that a former daemon's closed connections still linger on is free to be listened on again.
  if (!error) acceptor.set_option(TcpAcceptor::reuse_address(true), error);
  if (!error) acceptor.bind(address, error);
  if (!error) acceptor.listen(TcpAcceptor::max_listen_connections, error);
  if (!error) return acceptor;
  const bool taken = error == asio::error::address_in_use;
  return errno_error("listening on " + text(address), error.value(),
                     taken ? port_holder(address.port()) : "");
}

}  // namespace

Result<std::vector<TcpAcceptor>> listen_on(asio::io_context& io, const Endpoint& endpoint) {
  auto addresses = addresses_of(io, endpoint);
  if (!addresses) return addresses.error();
  std::vector<TcpAcceptor> acceptors;
  std::optional<Error> failure;
  for (auto address : *addresses) {
    if (address.port() == 0 && !acceptors.empty()) address.port(acceptors.front().local_endpoint().port());
    auto acceptor = listen_at(io, address);
    if (acceptor)
      acceptors.push_back(std::move(*acceptor));
    else if (failure)
      failure->why += "; " + acceptor.error().sentence();
    else
      failure = acceptor.error();
  }
  if (acceptors.empty()) return failure.value_or(Error{endpoint.text(), "it has no address"});
  return acceptors;
}

Result<std::vector<TcpAcceptor>> take_listeners(asio::io_context& io, const std::vector<int>& fds) {
  std::vector<TcpAcceptor> acceptors;
  for (const int fd : fds) {
    const std::string what = "--listen-fd " + std::to_string(fd);
    UniqueFd owned(fd);
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
        ::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
      return errno_error(what, errno);
    TcpAcceptor acceptor(io);
    error_code error;
    acceptor.assign(address.ss_family == AF_INET6 ? Tcp::v6() : Tcp::v4(), owned.get(), error);
    if (error) return errno_error(what, error.value());
    owned.release();
    acceptors.push_back(std::move(acceptor));
  }
  return acceptors;
}

}  // namespace muster::rendezvous
