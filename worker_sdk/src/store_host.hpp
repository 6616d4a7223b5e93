// Serves the worker store from this process: what rank 0 does under a launcher that does not.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace muster::worker {

class StoreHost {
 public:
  /// Listens and serves, on a thread of its own, until it is destroyed. `address` is numeric; port 0 lets the
  /// kernel choose. Throws CollectiveError with address and errno.
  StoreHost(const std::string& address, std::uint16_t port);
  ~StoreHost();
  StoreHost(const StoreHost&) = delete;
  StoreHost& operator=(const StoreHost&) = delete;

  std::uint16_t port() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::worker
