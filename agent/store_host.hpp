// Who provides the worker stores: one fresh, empty store for each round that this node may lead.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/error.hpp"

namespace muster::agent {

/// A round that begins with this node's store.
struct LedRound {
  struct Worker {
    int rank = 0;
    int pid = 0;
  };
  int round = 0;
  int world_size = 1;
  std::function<std::vector<Worker>()> local_workers;  ///< of this node, as far as they were started
};

/// Used from the agent's thread. `number` names a store; the agent counts it up from 1. At most two are open:
/// that of the round that runs, and the next one.
class StoreHost {
 public:
  virtual ~StoreHost() = default;
  StoreHost() = default;
  StoreHost(const StoreHost&) = delete;
  StoreHost& operator=(const StoreHost&) = delete;

  /// The port of the next round's store. Who connects to it from now on is served once its round begins, if
  /// not at once.
  virtual Result<std::uint16_t> open(int number) = 0;
  /// The round begins, and is led by this node.
  virtual void begin_round(int number, LedRound round) = 0;
  virtual void close(int number) = 0;
  /// Some client has connected to it, as far as this node can tell.
  virtual bool used(int number) const = 0;
};

}  // namespace muster::agent
