// The worker store, as the process group sees it.
#pragma once

#include <chrono>
#include <string>

#include "base/endpoint.hpp"
#include "rendezvous/store/client.hpp"
#include "worker_sdk/src/key_value_store.hpp"

namespace muster::worker {

class StoreLink : public KeyValueStore {
 public:
  /// Connects, and is counted among the store's workers. Keys go under `prefix`. Throws CollectiveError that
  /// names the store's address.
  StoreLink(const Endpoint& server, const std::string& prefix, std::chrono::milliseconds connect_timeout);

  void set(const std::string& key, const std::string& value) override;
  std::optional<std::string> get(const std::string& key, std::chrono::milliseconds timeout) override;

 private:
  rendezvous::StoreClient client_;
};

}  // namespace muster::worker
