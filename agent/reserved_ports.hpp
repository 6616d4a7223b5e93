// Ports for worker stores that worker 0 serves by itself, as PyTorch does where no launcher has one.
#pragma once

#include <map>

#include "agent/store_host.hpp"
#include "base/port_range.hpp"
#include "base/unique_fd.hpp"

namespace muster::agent {

/// Used from one thread.
class ReservedPorts final : public StoreHost {
 public:
  /// Of the kernel's choice, or the first of `ports` that nobody has.
  explicit ReservedPorts(PortRange ports) : ports_(ports) {}

  /// The port is bound on all addresses and not listened on: nobody else is given it, yet a program that sets
  /// SO_REUSEADDR, as PyTorch and our SDK do, can take it over.
  Result<std::uint16_t> open(int number) override;
  void begin_round(int, LedRound) override {}
  void close(int number) override { held_.erase(number); }
  /// Nobody here sees the workers' store: it may be.
  bool used(int) const override { return true; }

 private:
  PortRange ports_;
  std::map<int, UniqueFd> held_;
};

}  // namespace muster::agent
