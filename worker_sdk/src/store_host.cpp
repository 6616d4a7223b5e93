#include "worker_sdk/src/store_host.hpp"

#include <boost/asio/io_context.hpp>
#include <thread>

#include "muster/worker/process_group.hpp"
#include "rendezvous/store/listener.hpp"
#include "rendezvous/store/server.hpp"
#include "worker_sdk/src/lane.hpp"

namespace muster::worker {
namespace {

rendezvous::StoreServer start_server(boost::asio::io_context& context, const std::string& address,
                                     std::uint16_t port) {
  auto listener = rendezvous::open_listener(context.get_executor(), address, port);
  if (!listener) throw CollectiveError(listener.error().sentence());
  rendezvous::StoreServer server(context.get_executor(), std::move(*listener));
  const auto started = server.start();
  if (!started) throw CollectiveError(started.error().sentence());
  return server;
}

}  // namespace

struct StoreHost::Impl {
  Impl(const std::string& address, std::uint16_t port)
      : server(start_server(context, address, port)), bound_port(server.local_endpoint().port()) {
    const SignalsBlocked blocked;
    thread = std::thread([this] { context.run(); });
  }
  ~Impl() {
    context.stop();
    thread.join();
  }

  boost::asio::io_context context{1};
  rendezvous::StoreServer server;
  const std::uint16_t bound_port;
  std::thread thread;
};

StoreHost::StoreHost(const std::string& address, std::uint16_t port)
    : impl_(std::make_unique<Impl>(address, port)) {}

StoreHost::~StoreHost() = default;

std::uint16_t StoreHost::port() const { return impl_->bound_port; }

}  // namespace muster::worker
