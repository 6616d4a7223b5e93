// Who serves the worker stores: one fresh, empty store for each round that this node may lead.
#pragma once

#include <cstdint>

#include "base/error.hpp"

namespace muster::agent {

/// Used from the agent's thread. `number` names a store; the agent counts it up from 1.
class StoreHost {
 public:
  virtual ~StoreHost() = default;
  StoreHost() = default;
  StoreHost(const StoreHost&) = delete;
  StoreHost& operator=(const StoreHost&) = delete;

  /// Listens when it returns; the port.
  virtual Result<std::uint16_t> open(int number) = 0;
  virtual void close(int number) = 0;
  /// Some client has connected to it.
  virtual bool used(int number) const = 0;
};

}  // namespace muster::agent
