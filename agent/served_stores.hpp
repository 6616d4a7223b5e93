// Worker stores on this node's own address, one StoreServer each.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <map>
#include <string>

#include "agent/store_host.hpp"
#include "rendezvous/store/server.hpp"

namespace muster::agent {

/// Used from the executor's thread.
class ServedStores final : public StoreHost {
 public:
  /// `address`: numeric, what workers connect to. `notice` gets what an operator should read.
  ServedStores(boost::asio::any_io_executor executor, std::string address,
               std::function<void(const std::string&)> notice);

  Result<std::uint16_t> open(int number) override;
  void close(int number) override;
  bool used(int number) const override;

 private:
  boost::asio::any_io_executor executor_;
  std::string address_;
  std::function<void(const std::string&)> notice_;
  std::map<int, rendezvous::StoreServer> servers_;
};

}  // namespace muster::agent
