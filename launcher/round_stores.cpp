#include "launcher/round_stores.hpp"

#include <utility>

#include "rendezvous/store/listener.hpp"

namespace muster::launcher {

RoundStores::RoundStores(boost::asio::any_io_executor executor, std::function<void(const std::string&)> say)
    : executor_(std::move(executor)), say_(std::move(say)) {}

Result<std::uint16_t> RoundStores::open(int number) {
  auto listener = rendezvous::open_listener(executor_, "127.0.0.1", 0);
  if (!listener) return listener.error();
  rendezvous::StoreServer server(executor_, std::move(*listener));
  server.on_notice(say_);
  if (auto started = server.start(); !started) return started.error();
  const std::uint16_t port = server.local_endpoint().port();
  servers_.insert_or_assign(number, std::move(server));
  return port;
}

void RoundStores::close(int number) { servers_.erase(number); }

bool RoundStores::used(int number) const {
  const auto found = servers_.find(number);
  return found != servers_.end() && found->second.counters().connections_total > 0;
}

}  // namespace muster::launcher
