// Equal lines of several workers made one. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/time.hpp"

namespace muster::agent {

/// A line waits, `window` at most, for the same line of the other workers; then it is handed on once, with all who
/// wrote it. Each worker's lines keep their order: a line joins only an equal one that stands after all that its
/// writer has written so far, or before such lines of it as nobody shares, which move in front of that one then. A
/// worker that writes a line twice has it handed on twice.
class LineCollapse {
 public:
  struct Line {
    std::set<int> workers;
    std::string text;
  };
  struct Limits {
    Duration window = std::chrono::milliseconds(200);
    std::size_t max_waiting_bytes = 16 * 1024 * 1024;  ///< beyond it the oldest do not wait any longer
  };

  LineCollapse(std::set<int> workers, Limits limits) : expected_(std::move(workers)), limits_(limits) {}

  void add(int worker, std::string_view text, Instant now);
  /// Nothing more comes of it, and nobody waits for it.
  void ended(int worker) { expected_.erase(worker); }

  /// What need not wait any longer, in its order.
  std::vector<Line> take(Instant now);
  /// When something will have waited long enough.
  std::optional<Instant> wake_at() const;

 private:
  using Place = std::uint64_t;  ///< lines are handed on by their places, lowest first
  struct Waiting {
    Line line;
    Instant until;
    bool joinable = true;  ///< others may write the same
  };
  using Lines = std::map<Place, Waiting>;

  bool complete(const Line& line) const;
  void leave(std::vector<Line>& out);
  Lines::iterator equal_line(int worker, const std::string& text);
  bool move_before(Lines::iterator line, int worker);
  void share(int worker, Place place);

  std::set<int> expected_;
  Limits limits_;
  Lines waiting_;
  std::size_t waiting_bytes_ = 0;
  Place handed_on_ = 0;                                              ///< up to here
  std::unordered_map<std::string, std::set<Place>> places_of_text_;  ///< of those that wait
  std::map<int, std::set<Place>> own_places_of_;                     ///< of lines that only this worker wrote
  std::map<int, Place> shared_place_of_;  ///< the last line that it wrote with others
};

}  // namespace muster::agent
