// The last lines that a worker wrote, for the failure report. Pure.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace muster::agent {

/// Keeps the newest `max_lines` lines, each cut to kMaxBytesPerLine. A line that ends with "\r" (a state of a
/// progress bar) is overwritten by the next one, as on a terminal, so that a bar cannot push a message out.
class LastLines {
 public:
  static constexpr std::size_t kMaxBytesPerLine = 1024;

  explicit LastLines(std::size_t max_lines) : max_lines_(max_lines) {}

  /// `line` as LineSplitter gives it, with its end.
  void add(std::string_view line);
  /// Several lines together.
  void add_all(std::string_view lines);
  std::vector<std::string> lines() const;

 private:
  std::size_t max_lines_;
  std::deque<std::string> lines_;
  bool overwrite_last_ = false;
};

}  // namespace muster::agent
