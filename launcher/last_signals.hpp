// Stop signals that come while muster leaves: they end it no more, and only shorten what it waits for.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <vector>

#include "base/unique_fd.hpp"

namespace muster::launcher {

/// The agent takes signals until it goes; then each would have its default action back, while the status file and the
/// last screen are still to be written. This one takes them over before, for the rest of the process: when it goes
/// itself, they are blocked. So it has to outlive all threads but the one that made it. One for each process.
class LastSignals {
 public:
  LastSignals();
  ~LastSignals();
  LastSignals(const LastSignals&) = delete;
  LastSignals& operator=(const LastSignals&) = delete;

  /// Of `stops`, and of the warnings SIGUSR1 and SIGUSR2, those that a handler takes now. While the agent is there.
  void take_over(const std::vector<int>& stops);
  /// Can be read once one of `stops` came.
  int fd() const { return came_.get(); }
  void forget();

 private:
  void take_over(int number, void (*handler)(int));

  UniqueFd came_;               // an eventfd
  boost::asio::io_context io_;  // never runs
  boost::asio::signal_set kept_;
  std::vector<int> taken_;
};

}  // namespace muster::launcher
