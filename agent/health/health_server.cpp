#include "agent/health/health_server.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>

#include "base/endpoint.hpp"
#include "rendezvous/server/port_holder.hpp"

namespace muster::agent {

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using Tcp = asio::ip::tcp;
using Local = asio::local::stream_protocol;

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

}  // namespace

struct HealthServer::Running {
  bool stopped = false;
  int connections = 0;
  Answer answer;
  std::function<void()> close;
};

namespace {

template <class Protocol>
asio::awaitable<void> serve(asio::basic_stream_socket<Protocol> socket, auto running) {
  boost::beast::basic_stream<Protocol> stream(std::move(socket));
  boost::beast::flat_buffer buffer(HealthServer::kMaxRequestBytes);
  while (!running->stopped) {
    stream.expires_after(HealthServer::kIdleLimit);
    http::request<http::empty_body> request;
    error_code error;
    co_await http::async_read(stream, buffer, request, asio::redirect_error(asio::use_awaitable, error));
    if (error || running->stopped) co_return;
    const bool head = request.method() == http::verb::head;
    const HealthAnswer answer = head || request.method() == http::verb::get
                                    ? running->answer({request.target().data(), request.target().size()})
                                    : HealthAnswer{405, "{\"error\":\"this server only answers GET\"}\n"};
    http::response<http::string_body> response(static_cast<http::status>(answer.status), request.version());
    response.set(http::field::content_type, "application/json");
    response.keep_alive(request.keep_alive());
    response.body() = answer.body;
    response.prepare_payload();
    if (head) response.body().clear();
    co_await http::async_write(stream, response, asio::redirect_error(asio::use_awaitable, error));
    if (error || !response.keep_alive()) co_return;
  }
}

template <class Protocol>
asio::awaitable<void> accept_all(std::shared_ptr<asio::basic_socket_acceptor<Protocol>> acceptor,
                                 auto running) {
  while (!running->stopped) {
    error_code error;
    auto socket = co_await acceptor->async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (running->stopped) co_return;
    if (!error && running->connections < HealthServer::kMaxConnections) {
      ++running->connections;
      asio::co_spawn(acceptor->get_executor(), serve<Protocol>(std::move(socket), running),
                     [running](const std::exception_ptr&) { --running->connections; });
    } else if (error && error != asio::error::connection_aborted) {
      asio::steady_timer pause(acceptor->get_executor(),
                               std::chrono::milliseconds(200));  // no descriptor is free
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
    }
  }
}

template <class Protocol>
void begin(asio::io_context& io, asio::basic_socket_acceptor<Protocol> acceptor, auto running) {
  const auto shared = std::make_shared<asio::basic_socket_acceptor<Protocol>>(std::move(acceptor));
  running->close = [shared] {
    error_code ignored;  // it is over either way
    shared->close(ignored);
  };
  asio::co_spawn(io, accept_all<Protocol>(shared, running), asio::detached);
}

template <class Protocol>
error_code open_at(asio::basic_socket_acceptor<Protocol>& acceptor,
                   const typename Protocol::endpoint& endpoint) {
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
  std::unique_ptr<HealthServer> server(new HealthServer);
  server->running_ = std::make_shared<Running>();
  server->running_->answer = std::move(answer);
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
  Tcp::acceptor acceptor(io);
  if (const error_code error = open_at(acceptor, *address))
    return errno_error("--health " + where, error.value(),
                       error == asio::error::address_in_use ? rendezvous::port_holder(address->port()) : "");
  error_code ignored;  // it listens, so it has an address
  address_ = "http://" + Endpoint{endpoint->host, acceptor.local_endpoint(ignored).port()}.text() + "/health";
  begin(io, std::move(acceptor), running_);
  return {};
}

Result<void> HealthServer::listen_at_path(asio::io_context& io, const std::string& path) {
  const std::string what = "--health unix:" + path;
  if (path.empty() || path.size() >= sizeof(::sockaddr_un{}.sun_path))
    return errno_error(what, path.empty() ? EINVAL : ENAMETOOLONG);
  remove_dead_socket(io, path);
  Local::acceptor acceptor(io);
  if (const error_code error = open_at(acceptor, Local::endpoint(path)))
    return errno_error(
        what, error.value(),
        error == asio::error::address_in_use ? "somebody listens there, or another file is in the way" : "");
  path_ = path;
  address_ = "unix:" + path;
  begin(io, std::move(acceptor), running_);
  return {};
}

HealthServer::~HealthServer() { stop(); }

void HealthServer::stop() {
  if (!running_ || running_->stopped) return;
  running_->stopped = true;
  running_->answer = nullptr;
  if (running_->close) running_->close();
  if (!path_.empty()) static_cast<void>(::unlink(path_.c_str()));  // somebody else may have removed it
}

}  // namespace muster::agent
