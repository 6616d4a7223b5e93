// Worker stores on this node's own address, one StoreServer each.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "agent/report/report.hpp"
#include "agent/store_host.hpp"
#include "base/port_range.hpp"
#include "base/time.hpp"
#include "rendezvous/store/server.hpp"

namespace muster::agent {

struct ServedStoresOptions {
  std::string address;  ///< numeric, what workers connect to
  /// One of the kernel's choice for each store, which nothing else on this machine can have. With a range, one
  /// socket at its first free port is bound once and serves store after store.
  PortRange ports;
  /// A round that has not got on for so long is explained; zero: never.
  Duration stall_after = std::chrono::seconds(60);
  std::function<void(const std::string&)> notice = {};  ///< gets what an operator should read
};

/// Used from the executor's thread.
class ServedStores final : public StoreHost {
 public:
  ServedStores(boost::asio::any_io_executor executor, ServedStoresOptions options);
  ~ServedStores() override;

  Result<std::uint16_t> open(int number) override;
  void begin_round(int number, LedRound round) override;
  void close(int number) override;
  bool used(int number) const override;

  /// That round's store is for clients of these numeric addresses and of loopback; none: for all. `nodes` are the
  /// round's, for what is said of one that does not get on. To be said before the round begins.
  void expect_clients(int round, std::vector<std::string> addresses,
                      std::vector<rendezvous::StoreRound::Node> nodes = {});

  /// What was said of rounds that did not get on, for the report; the last ones.
  const std::vector<Stall>& stalls() const { return stalls_; }

 private:
  struct Served;

  Result<boost::asio::ip::tcp::acceptor> next_listener();
  void watch(int number);
  void look_for_stall(int number);
  static std::optional<std::string> stall_of(Served& served);
  void watch_for_end(int number);
  void look_for_crowd(Served& served);
  void note_stall(int round, const std::string& sentence);
  void say(const std::string& sentence) const;

  boost::asio::any_io_executor executor_;
  ServedStoresOptions options_;
  std::optional<boost::asio::ip::tcp::acceptor> shared_;  ///< with a range of ports, from the first store on
  std::map<int, std::unique_ptr<Served>> stores_;
  int expected_in_ = 0;                              ///< the round whose clients were named last
  std::vector<std::string> expected_;                ///< those
  std::vector<rendezvous::StoreRound::Node> nodes_;  ///< and its nodes
  std::vector<Stall> stalls_;
};

}  // namespace muster::agent
