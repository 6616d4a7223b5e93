#include "agent/health/health_server.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cerrno>
#include <filesystem>

#include "base/endpoint.hpp"
#include "base/port_holder.hpp"

namespace muster::agent {

namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Tcp = asio::ip::tcp;
using Local = asio::local::stream_protocol;
template <class Protocol>
using Acceptor = asio::basic_socket_acceptor<Protocol, asio::io_context::executor_type>;

constexpr std::string_view kUnix = "unix:";

Result<Tcp::endpoint> address_of(asio::io_context& io, const Endpoint& endpoint) {
  error_code error;
  const auto numeric = asio::ip::make_address(endpoint.host, error);
  if (!error) return Tcp::endpoint(numeric, endpoint.port);
  const auto found =
      Tcp::resolver(io).resolve(endpoint.host, std::to_string(endpoint.port),
                                Tcp::resolver::numeric_service | Tcp::resolver::passive, error);
  if (error) return Error{"--health " + endpoint.text(), "the name cannot be looked up: " + error.message()};
  return found.begin()->endpoint();
}

/// A socket file that nobody listens at any more goes; the bind that follows says what else is in the way.
void remove_dead_socket(asio::io_context& io, const std::string& path) {
  struct stat file {};
  if (::lstat(path.c_str(), &file) != 0 || !S_ISSOCK(file.st_mode)) return;
  error_code error;
  Local::socket(io).connect(Local::endpoint(path), error);
  if (error == asio::error::connection_refused) static_cast<void>(::unlink(path.c_str()));
}

template <class Protocol>
error_code open_at(Acceptor<Protocol>& acceptor, const typename Protocol::endpoint& endpoint) {
  error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  return error;
}

}  // namespace

Result<std::unique_ptr<HealthServer>> HealthServer::listen(asio::io_context& io, const std::string& where,
                                                           Answer answer) {
  std::unique_ptr<HealthServer> server(new HealthServer(std::move(answer)));
  const auto listens = where.starts_with(kUnix) ? server->listen_at_path(io, where.substr(kUnix.size()))
                                                : server->listen_at_port(io, where);
  if (!listens) return listens.error();
  return server;
}

Result<void> HealthServer::listen_at_port(asio::io_context& io, const std::string& where) {
  const auto endpoint = parse_endpoint(where, 0);
  if (!endpoint) return endpoint.error();
  const auto address = address_of(io, *endpoint);
  if (!address) return address.error();
  Acceptor<Tcp> acceptor(io);
  if (const error_code error = open_at(acceptor, *address))
    return errno_error("--health " + where, error.value(),
                       error == asio::error::address_in_use ? port_holder(address->port()) : "");
  error_code ignored;  // it listens, so it has an address
  address_ = "http://" + Endpoint{endpoint->host, acceptor.local_endpoint(ignored).port()}.text() + "/health";
  pages_.serve_at(std::move(acceptor));
  return {};
}

Result<void> HealthServer::listen_at_path(asio::io_context& io, const std::string& path) {
  const std::string what = "--health unix:" + path;
  if (path.empty() || path.size() >= sizeof(::sockaddr_un{}.sun_path))
    return errno_error(what, path.empty() ? EINVAL : ENAMETOOLONG);
  const std::string folder = std::filesystem::absolute(path).parent_path();
  std::error_code not_there;
  if (!std::filesystem::is_directory(folder, not_there))
    return Error{what, "there is no folder " + folder, "make it, or name a path in one that is there"};
  remove_dead_socket(io, path);
  Acceptor<Local> acceptor(io);
  if (const error_code error = open_at(acceptor, Local::endpoint(path)))
    return errno_error(
        what, error.value(),
        error == asio::error::address_in_use ? "somebody listens there, or another file is in the way" : "");
  path_ = path;
  address_ = "unix:" + path;
  pages_.serve_at(std::move(acceptor));
  return {};
}

HealthServer::HealthServer(Answer answer)
    : pages_([answer = std::move(answer)](const HttpRequest& request) {
        auto found = answer(request.target);
        return HttpAnswer{found.status, "application/json", std::move(found.body)};
      }) {}

HealthServer::~HealthServer() { stop(); }

void HealthServer::stop() {
  pages_.stop();
  if (!path_.empty()) static_cast<void>(::unlink(path_.c_str()));  // somebody else may have removed it
  path_.clear();
}

}  // namespace muster::agent
