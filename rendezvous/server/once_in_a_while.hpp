// Lets the first line about something through and holds the next ones back for a while, so that a peer that
// tries ten thousand times costs one line a minute; one that is refused for another reason each time, a few. Pure.
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
  static constexpr int kMaxLinesAboutOne = 20;  ///< in a while

  /// Nothing while `what` of `whom` had its line less than kWhile ago, or too many other things of the same one had.
  /// Otherwise how many were held back since then.
  std::optional<int> let_through(const std::string& whom, const std::string& what, Instant now) {
    Lines& lines = one_of(lines_, whom);
    if (now - lines.since >= kWhile) lines = Lines{now, 0};
    if (lines.number >= kMaxLinesAboutOne) return std::nullopt;
    Seen& seen = one_of(seen_, whom + " " + what);
    if (seen.last && now - *seen.last < kWhile) {
      ++seen.held_back;
      return std::nullopt;
    }
    const int held_back = seen.held_back;
    seen = Seen{now, 0};
    ++lines.number;
    return held_back;
  }

  /// The line that was let through is the last one about `whom` for a while.
  bool last_about(const std::string& whom) const {
    const auto found = lines_.find(whom);
    return found != lines_.end() && found->second.number >= kMaxLinesAboutOne;
  }

 private:
  struct Seen {
    std::optional<Instant> last;
    int held_back = 0;
  };
  struct Lines {
    Instant since{};
    int number = 0;
  };

  template <class T>
  static T& one_of(std::map<std::string, T>& known, const std::string& key) {
    if (known.size() >= kMaxKeys && !known.contains(key)) known.clear();
    return known[key];
  }

  std::map<std::string, Seen> seen_;
  std::map<std::string, Lines> lines_;
};

}  // namespace muster::rendezvous
