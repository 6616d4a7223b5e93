// This node's part in hosting the rendezvous: looks whether the endpoint is here, and starts a daemon there
// when none answers; at the start, and again whenever the daemon cannot be reached.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "launcher/hosting.hpp"
#include "launcher/rendezvous_options.hpp"

namespace muster::launcher {

/// Used from the io's thread.
class RendezvousHost {
 public:
  using Say = std::function<void(const std::string&)>;

  RendezvousHost(boost::asio::io_context& io, const Meeting& meeting, std::filesystem::path log_file,
                 Say say);

  /// The first look. Blocks while a name is looked up; a name that cannot be is no error, it may come. The error: this
  /// node has to host the rendezvous and cannot start the daemon, so nobody would ever meet there.
  Result<void> settle();
  /// The daemon did not answer. A name that could not be looked up is looked up again, without blocking.
  void look_again();
  void stop() { resolver_.cancel(); }
  /// Says once why it is not hosted here, with the addresses that were considered, or whose the port is.
  void explain();

  const Place& place() const { return place_; }
  /// What this node's workers' store listens at: --local-addr, or what follows from the place, or the address
  /// that leads to the endpoint. Empty: not known yet, so every address.
  std::string local_address() const { return local_address_; }
  bool started_one() const { return daemons_ > 0; }
  /// The newest one that was started here; -1: none, or it is gone.
  pid_t daemon() const { return daemon_; }
  /// Told of each daemon that is started.
  void on_daemon(std::function<void(pid_t)> started) { started_ = std::move(started); }

 private:
  void learn(const std::vector<Address>& addresses);
  void host_if_needed();
  void say_once(const std::string& line);

  Meeting meeting_;
  std::filesystem::path log_file_;
  Say say_;
  std::string last_said_;
  bool settled_ = false;
  std::optional<Error> no_daemon_;  ///< why none could be started at the first look
  std::function<void(pid_t)> started_;
  boost::asio::ip::tcp::resolver resolver_;
  Place place_;
  std::string local_address_;
  bool resolved_ = false;
  bool resolving_ = false;
  bool was_hosted_ = false;  ///< by whomever
  int daemons_ = 0;
  pid_t daemon_ = -1;  ///< the newest
};

}  // namespace muster::launcher
