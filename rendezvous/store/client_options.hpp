// What a store client is told at the start, and how it says that something went wrong.
#pragma once

#include <chrono>
#include <stdexcept>

#include "rendezvous/store/codec.hpp"

namespace muster::rendezvous {

/// "worker store 10.0.0.1:41877: GET: ...".
class StoreError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// "wait timeout after 100ms, keys: /the_key".
class StoreTimeout : public StoreError {
  using StoreError::StoreError;
};

struct StoreClientOptions {
  std::chrono::milliseconds connect_timeout{300'000};  ///< from the first try to a server that answers
  std::chrono::milliseconds timeout{300'000};          ///< of each call that is given none
  /// undecided: find out. `c` (PyTorch 2.1 and newer, muster) or `a` (up to 2.0): speak nothing else.
  StoreDialect dialect = StoreDialect::undecided;
  std::size_t reply_bytes_max = 1UL << 30;
};

/// When a call gives up, and the time it was given (for the sentence that says so).
struct StoreDeadline {
  std::chrono::steady_clock::time_point at;
  std::chrono::milliseconds span;

  static StoreDeadline in(std::chrono::milliseconds span) {
    return {std::chrono::steady_clock::now() + span, span};
  }
};

}  // namespace muster::rendezvous
