#include "base/http_pages.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <list>
#include <vector>

namespace muster {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using Stream =
    boost::beast::basic_stream<HttpPages::Acceptor::protocol_type, HttpPages::Acceptor::executor_type>;

struct HttpPages::Running {
  bool stopped = false;
  Answer answer;
  std::vector<std::shared_ptr<Acceptor>> acceptors;
  std::list<Stream*> open;  ///< who has kept us waiting for longest comes first

  /// Closes it; what waits for it ends with an error.
  void make_room() {
    error_code ignored;
    open.front()->socket().close(ignored);
    open.pop_front();
  }

  /// Among the open ones while it lives.
  class Place {
   public:
    Place(Running& running, Stream& stream) : running_(running), stream_(stream) { go_last(); }
    ~Place() { running_.open.remove(&stream_); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    void go_last() {
      running_.open.remove(&stream_);
      running_.open.push_back(&stream_);
    }

   private:
    Running& running_;
    Stream& stream_;
  };
};

namespace {

constexpr std::chrono::milliseconds kPauseWithoutDescriptors{200};

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

std::string_view bearer_in(const http::request<http::empty_body>& request) {
  constexpr std::string_view kBearer = "Bearer ";
  const auto value = view(request[http::field::authorization]);
  return value.starts_with(kBearer) ? value.substr(kBearer.size()) : std::string_view();
}

asio::awaitable<void> serve(Stream::socket_type socket, auto running) {
  Stream stream(std::move(socket));
  typename decltype(running)::element_type::Place place(*running, stream);
  boost::beast::flat_buffer buffer(HttpPages::kMaxRequestBytes);
  while (!running->stopped) {
    stream.expires_after(HttpPages::kIdleLimit);
    http::request<http::empty_body> request;
    error_code error;
    co_await http::async_read(stream, buffer, request, asio::redirect_error(asio::use_awaitable, error));
    if (error || running->stopped) co_return;
    const bool head = request.method() == http::verb::head;
    HttpAnswer answer{405, "application/json", "{\"error\":\"this server only answers GET\"}\n"};
    if (head || request.method() == http::verb::get)
      answer = running->answer({view(request.target()), bearer_in(request)});
    http::response<http::string_body> response(static_cast<http::status>(answer.status), request.version());
    response.set(http::field::content_type, answer.content_type);
    response.keep_alive(request.keep_alive());
    response.body() = std::move(answer.body);
    response.prepare_payload();
    if (head) response.body().clear();
    co_await http::async_write(stream, response, asio::redirect_error(asio::use_awaitable, error));
    if (error || !response.keep_alive()) co_return;
    place.go_last();
  }
}

asio::awaitable<void> accept_all(std::shared_ptr<HttpPages::Acceptor> acceptor, auto running) {
  while (!running->stopped) {
    error_code error;
    auto socket = co_await acceptor->async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (running->stopped) co_return;
    if (!error) {
      while (running->open.size() >= HttpPages::kMaxConnections) running->make_room();
      asio::co_spawn(acceptor->get_executor(), serve(std::move(socket), running),
                     [](const std::exception_ptr&) {});
    } else if (error && error != asio::error::connection_aborted) {
      asio::steady_timer pause(acceptor->get_executor(), kPauseWithoutDescriptors);
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
    }
  }
}

}  // namespace

HttpPages::HttpPages(Answer answer) : running_(std::make_shared<Running>()) {
  running_->answer = std::move(answer);
}

void HttpPages::serve_at(Acceptor acceptor) {
  const auto shared = std::make_shared<Acceptor>(std::move(acceptor));
  running_->acceptors.push_back(shared);
  asio::co_spawn(shared->get_executor(), accept_all(shared, running_), asio::detached);
}

void HttpPages::stop() {
  if (running_->stopped) return;
  running_->stopped = true;
  running_->answer = nullptr;
  for (const auto& acceptor : running_->acceptors) {
    error_code ignored;  // it is over either way
    acceptor->close(ignored);
  }
}

}  // namespace muster
