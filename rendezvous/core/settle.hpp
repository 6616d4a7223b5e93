// Changes that follow each other closely are taken together: each one starts the settle window anew, but a
// stream of them holds nothing back for longer than the settle limit.
#pragma once

#include <algorithm>
#include <optional>

#include "base/time.hpp"

namespace muster::rendezvous {

struct Settle {
  std::optional<Instant> first;
  Instant last{};

  void note(Instant now) {
    if (!first) first = now;
    last = now;
  }
  void reset() { first.reset(); }

  /// When the changes so far count as settled: nothing if there were none.
  std::optional<Instant> at(Duration window, Duration limit) const {
    if (!first) return std::nullopt;
    return std::min(last + window, *first + std::max(window, limit));
  }

  bool operator==(const Settle&) const = default;
};

}  // namespace muster::rendezvous
