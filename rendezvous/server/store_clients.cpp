#include "rendezvous/server/store_clients.hpp"

#include <algorithm>
#include <set>

#include "base/bare_address.hpp"
#include "rendezvous/protocol/channel_messages.hpp"

namespace muster::rendezvous {
namespace {

bool is_loopback(const std::string& text) {
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(text, error);
  return !error && address.is_loopback();
}

bool translated(const std::string& address, const std::vector<std::string>& own) {
  const auto text = bare_text(address);
  return !is_loopback(text) && std::find(own.begin(), own.end(), text) == own.end();
}

}  // namespace

std::vector<std::string> store_clients(const std::vector<NodeAddresses>& nodes) {
  std::set<std::string> all;
  for (const NodeAddresses& node : nodes) {
    std::vector<std::string> own;
    for (const std::string& address : node.own) own.push_back(bare_text(address));
    if (own.empty() || translated(node.offered, own) || translated(node.seen_from, own)) return {};
    all.insert(own.begin(), own.end());
  }
  if (all.size() > kMaxStoreClients) return {};
  return {all.begin(), all.end()};
}

}  // namespace muster::rendezvous
