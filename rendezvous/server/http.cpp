#include "rendezvous/server/http.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

#include "rendezvous/server/status_json.hpp"

namespace muster::rendezvous {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using Stream = boost::beast::basic_stream<asio::ip::tcp, asio::io_context::executor_type>;

constexpr std::string_view kBearer = "Bearer ";
constexpr std::string_view kJobs = "/v1/jobs";

std::string_view bearer_in(const http::request<http::empty_body>& request) {
  const auto field = request[http::field::authorization];
  const std::string_view value(field.data(), field.size());
  return value.starts_with(kBearer) ? value.substr(kBearer.size()) : std::string_view();
}

// "%2F" and its like, as job ids may need them.
std::string percent_decoded(std::string_view text) {
  const auto hex = [](char c) {
    const auto at = std::string_view("0123456789abcdef").find(static_cast<char>(c | 0x20));
    return c >= '0' && at != std::string_view::npos ? static_cast<int>(at) : -1;
  };
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape =
        text[i] == '%' && i + 2 < text.size() && hex(text[i + 1]) >= 0 && hex(text[i + 2]) >= 0;
    decoded += escape ? static_cast<char>(hex(text[i + 1]) * 16 + hex(text[i + 2])) : text[i];
    if (escape) i += 2;
  }
  return decoded;
}

HttpAnswer problem(int status, const std::string& why) {
  return {status, "application/json", dump({{"error", why}})};
}

}  // namespace

HttpAnswer answer_http(const Daemon& daemon, std::string_view target, std::string_view bearer) {
  target = target.substr(0, target.find('?'));
  if (target == "/healthz") return {200, "text/plain", "ok\n"};
  const auto& token = daemon.options().token;
  if (token && !token->matches(bearer)) return problem(401, "this daemon wants its token as a bearer token");
  if (target == "/metrics") return {200, "text/plain; version=0.0.4", metrics_text(daemon)};
  if (target == kJobs) {
    Json all = Json::array();
    for (const auto& [id, job] : daemon.jobs()) all.push_back(summary_json(*job));
    return {200, "application/json", dump({{"jobs", std::move(all)}})};
  }
  if (!target.starts_with(std::string(kJobs) + "/")) return problem(404, "there is no such page");
  const auto found = daemon.jobs().find(percent_decoded(target.substr(kJobs.size() + 1)));
  if (found == daemon.jobs().end()) return problem(404, "there is no such job");
  auto json = status_json(*found->second);
  json["events"] = events_json(*found->second)["events"];
  return {200, "application/json", dump(json)};
}

Result<Endpoint> HttpServer::listen(const Endpoint& endpoint) {
  auto acceptors = listen_on(io_, endpoint);
  if (!acceptors) return acceptors.error();
  acceptors_ = std::move(*acceptors);
  for (auto& acceptor : acceptors_) asio::co_spawn(io_, accept_all(acceptor, running_), asio::detached);
  return Endpoint{endpoint.host, acceptors_.front().local_endpoint().port()};
}

void HttpServer::stop() {
  running_->stopped = true;
  for (auto& acceptor : acceptors_) {
    error_code ignored;
    acceptor.close(ignored);
  }
}

asio::awaitable<void> HttpServer::accept_all(TcpAcceptor& acceptor, std::shared_ptr<Running> running) {
  while (!running->stopped) {
    error_code error;
    auto socket = co_await acceptor.async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (running->stopped) co_return;
    if (!error && running->connections < kMaxConnections) {
      ++running->connections;
      asio::co_spawn(io_, serve(std::move(socket), running),
                     [running](const std::exception_ptr&) { --running->connections; });
    } else if (error && error != asio::error::connection_aborted) {
      asio::steady_timer pause(io_, std::chrono::milliseconds(200));  // no file descriptors: wait for some
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
    }
  }
}

asio::awaitable<void> HttpServer::serve(TcpSocket socket, std::shared_ptr<Running> running) {
  Stream stream(std::move(socket));
  boost::beast::flat_buffer buffer(kMaxRequestBytes);
  while (!running->stopped) {
    stream.expires_after(kIdleLimit);
    http::request<http::empty_body> request;
    error_code error;
    co_await http::async_read(stream, buffer, request, asio::redirect_error(asio::use_awaitable, error));
    if (error || running->stopped) co_return;
    const bool get = request.method() == http::verb::get || request.method() == http::verb::head;
    auto answer =
        get ? answer_http(daemon_, {request.target().data(), request.target().size()}, bearer_in(request))
            : problem(405, "this server only answers GET");
    http::response<http::string_body> response(static_cast<http::status>(answer.status), request.version());
    response.set(http::field::content_type, answer.content_type);
    response.keep_alive(request.keep_alive());
    response.body() = std::move(answer.body);
    response.prepare_payload();
    if (request.method() == http::verb::head) response.body().clear();
    co_await http::async_write(stream, response, asio::redirect_error(asio::use_awaitable, error));
    if (error || !response.keep_alive()) co_return;
  }
}

}  // namespace muster::rendezvous
