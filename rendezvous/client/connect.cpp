#include "rendezvous/client/connect.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>
#include <vector>

namespace muster::rendezvous {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Tcp = asio::ip::tcp;

constexpr std::size_t kMaxAddressesTried = 16;

asio::awaitable<Result<std::vector<Tcp::endpoint>>> addresses_of(asio::io_context& io,
                                                                 const Endpoint& endpoint) {
  error_code error;
  const auto numeric = asio::ip::make_address(endpoint.host, error);
  if (!error) co_return std::vector<Tcp::endpoint>{{numeric, endpoint.port}};
  Tcp::resolver resolver(io);
  const auto results = co_await resolver.async_resolve(endpoint.host, std::to_string(endpoint.port),
                                                       Tcp::resolver::numeric_service,
                                                       asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return Error{endpoint.text(), "the name cannot be looked up: " + error.message()};
  std::vector<Tcp::endpoint> addresses(results.begin(), results.end());
  if (addresses.size() > kMaxAddressesTried) addresses.resize(kMaxAddressesTried);
  co_return addresses;
}

}  // namespace

// Shared with the timer's handler, which may run after the connect is done.
struct ConnectAttempt {
  ConnectAttempt(asio::io_context& io, std::shared_ptr<ConnectStop> the_stop)
      : socket(io), timer(io), stop(std::move(the_stop)) {
    stop->attempt_ = this;
  }
  ~ConnectAttempt() { finished(); }
  ConnectAttempt(const ConnectAttempt&) = delete;
  ConnectAttempt& operator=(const ConnectAttempt&) = delete;

  void finished() {
    done = true;
    if (stop->attempt_ == this) stop->attempt_ = nullptr;
  }
  void end() {  // the connect under way then fails with operation_aborted
    error_code ignored;
    socket.close(ignored);
  }
  static bool stopped(const ConnectStop& stop) { return stop.stopped_; }

  TcpSocket socket;
  asio::steady_timer timer;
  std::shared_ptr<ConnectStop> stop;
  bool late = false;
  bool done = false;
};

void ConnectStop::stop() {
  stopped_ = true;
  if (attempt_ != nullptr) attempt_->end();
}

namespace {

asio::awaitable<error_code> connect_one(std::shared_ptr<ConnectAttempt> attempt, Tcp::endpoint address,
                                        Duration limit) {
  attempt->timer.expires_after(limit);
  attempt->timer.async_wait([attempt](const error_code& error) {
    if (error || attempt->done) return;
    attempt->late = true;
    attempt->end();
  });
  error_code error;
  co_await attempt->socket.async_connect(address, asio::redirect_error(asio::use_awaitable, error));
  attempt->finished();
  attempt->timer.cancel();
  co_return attempt->late ? asio::error::timed_out : error;
}

}  // namespace

asio::awaitable<Result<TcpSocket>> connect_to(asio::io_context& io, Endpoint endpoint, Duration per_address,
                                              std::shared_ptr<ConnectStop> stop) {
  const auto addresses = co_await addresses_of(io, endpoint);
  if (!addresses) co_return addresses.error();
  Error failure{endpoint.text(), "it has no address"};
  std::string tried;
  for (const auto& address : *addresses) {
    if (ConnectAttempt::stopped(*stop)) break;
    const auto attempt = std::make_shared<ConnectAttempt>(io, stop);
    const auto error = co_await connect_one(attempt, address, per_address);
    TcpSocket& socket = attempt->socket;
    // A connection to a free local port can meet itself: both ends are then the same socket.
    error_code ignored;
    const bool itself = !error && socket.local_endpoint(ignored) == socket.remote_endpoint(ignored);
    if (!error && !itself) co_return std::move(socket);
    const int number = itself ? ECONNREFUSED : error.value();
    tried += (tried.empty() ? "" : "; ") + text(address) + ": " + errno_text(number);
    failure = Error{endpoint.text(), tried, "", number};
    if (addresses->size() == 1 && endpoint.text() == text(address)) failure.why = errno_text(number);
  }
  co_return failure;
}

}  // namespace muster::rendezvous
