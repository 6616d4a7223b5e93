#include "worker_sdk/src/store_link.hpp"

#include "muster/worker/process_group.hpp"

namespace muster::worker {
namespace {

/// Of a call that waits for nothing. Also after the store was lost: then a group that has failed must not be
/// kept from saying so.
constexpr std::chrono::milliseconds answer_timeout{5000};

rendezvous::StoreClient connect(const Endpoint& server, const std::string& prefix,
                                std::chrono::milliseconds connect_timeout) {
  try {
    rendezvous::StoreClient client(server, {.connect_timeout = connect_timeout, .timeout = answer_timeout});
    client.announce_worker();
    return client.prefixed(prefix);
  } catch (const rendezvous::StoreError& error) {
    throw CollectiveError(error.what());
  }
}

}  // namespace

StoreLink::StoreLink(const Endpoint& server, const std::string& prefix,
                     std::chrono::milliseconds connect_timeout)
    : client_(connect(server, prefix, connect_timeout)) {}

void StoreLink::set(const std::string& key, const std::string& value) {
  try {
    client_.set(key, value);
  } catch (const rendezvous::StoreError& error) {
    throw CollectiveError(error.what());
  }
}

std::optional<std::string> StoreLink::get(const std::string& key, std::chrono::milliseconds timeout) {
  try {
    return client_.get(key, timeout);
  } catch (const rendezvous::StoreTimeout&) {
    return std::nullopt;
  } catch (const rendezvous::StoreError& error) {
    throw CollectiveError(error.what());
  }
}

}  // namespace muster::worker
