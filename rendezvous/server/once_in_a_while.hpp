// Lets the first line about something through and holds the next ones back for a while, so that a peer that
// tries ten thousand times costs one line a minute. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/time.hpp"

namespace muster::rendezvous {

class OnceInAWhile {
 public:
  static constexpr std::size_t kMaxKeys =
      1024;  ///< beyond it all is forgotten: rather a line twice than memory
  static constexpr Duration kWhile = std::chrono::minutes(1);

  /// Nothing while `key` had its line less than kWhile ago. Otherwise how many were held back since then.
  std::optional<int> let_through(const std::string& key, Instant now) {
    if (seen_.size() >= kMaxKeys && !seen_.contains(key)) seen_.clear();
    const auto [at, is_new] = seen_.try_emplace(key, Seen{now, 0});
    if (is_new) return 0;
    if (now - at->second.last < kWhile) {
      ++at->second.held_back;
      return std::nullopt;
    }
    const int held_back = at->second.held_back;
    at->second = Seen{now, 0};
    return held_back;
  }

 private:
  struct Seen {
    Instant last;
    int held_back;
  };
  std::map<std::string, Seen> seen_;
};

}  // namespace muster::rendezvous
