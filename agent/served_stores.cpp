#include "agent/served_stores.hpp"

#include <utility>

namespace muster::agent {

ServedStores::ServedStores(boost::asio::any_io_executor executor, std::string address,
                           std::function<void(const std::string&)> notice)
    : executor_(std::move(executor)), address_(std::move(address)), notice_(std::move(notice)) {}

// A port of the kernel's choice: nothing else on this machine can have it, however many jobs start at once.
Result<std::uint16_t> ServedStores::open(int number) {
  auto listener = rendezvous::open_listener(executor_, address_, 0);
  if (!listener) return listener.error();
  rendezvous::StoreServer server(executor_, std::move(*listener));
  if (notice_) server.on_notice(notice_);
  if (const auto started = server.start(); !started) return started.error();
  const std::uint16_t port = server.local_endpoint().port();
  servers_.insert_or_assign(number, std::move(server));
  return port;
}

void ServedStores::close(int number) { servers_.erase(number); }

bool ServedStores::used(int number) const {
  const auto found = servers_.find(number);
  return found != servers_.end() && found->second.counters().connections_total > 0;
}

}  // namespace muster::agent
