// The worker stores of a job that lives on this node alone.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <map>
#include <string>

#include "agent/store_host.hpp"
#include "rendezvous/store/server.hpp"

namespace muster::launcher {

/// Each store listens on 127.0.0.1, on a port that the kernel chooses. The executor must not run any more
/// when this is destroyed.
class RoundStores final : public agent::StoreHost {
 public:
  /// `say`: a line for the user, without prefix and newline.
  RoundStores(boost::asio::any_io_executor executor, std::function<void(const std::string&)> say);

  Result<std::uint16_t> open(int number) override;
  void close(int number) override;
  bool used(int number) const override;

 private:
  boost::asio::any_io_executor executor_;
  std::function<void(const std::string&)> say_;
  std::map<int, rendezvous::StoreServer> servers_;  // at most two: this round's and the next one's
};

}  // namespace muster::launcher
