// Bytes as they come from a pipe, cut into lines. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace muster::agent {

/// A line ends with "\n", or with a "\r" that no "\n" follows (so that a progress bar's states count as
/// lines). Lines are handed on with their end; a line longer than the limit is handed on in pieces of the
/// limit's length, of which all but the last have no end.
class LineSplitter {
 public:
  explicit LineSplitter(std::size_t max_line_bytes)
      : max_line_bytes_(std::max<std::size_t>(max_line_bytes, 1)) {}

  /// Calls `sink(std::string_view)` for each line that is whole now, in order. What is left waits for more.
  template <class Sink>
  void feed(std::string_view bytes, Sink&& sink) {
    // Only as much is joined to the waiting piece as may complete it: the bulk is never copied.
    while (!rest_.empty() && !bytes.empty()) {
      const std::size_t wanted = bytes_that_end_the_rest(bytes);
      rest_.append(bytes.substr(0, wanted));
      bytes.remove_prefix(wanted);
      const std::string joined = std::exchange(rest_, {});
      cut(joined, sink);
    }
    if (rest_.empty()) cut(bytes, sink);
  }

  /// The same, but lines that lie together are handed on together: `sink` gets blocks of them. A line that is
  /// longer than the limit may come in one piece here.
  template <class Sink>
  void feed_blocks(std::string_view bytes, Sink&& sink) {
    const std::size_t first_end = rest_.empty() ? 0 : bytes.find('\n');
    const std::size_t last_end = bytes.rfind('\n');
    if (last_end == std::string_view::npos) return feed(bytes, sink);
    if (!rest_.empty()) {
      feed(bytes.substr(0, first_end + 1), sink);
      bytes.remove_prefix(first_end + 1);
    }
    const std::size_t whole = bytes.rfind('\n') == std::string_view::npos ? 0 : bytes.rfind('\n') + 1;
    if (whole > 0) sink(bytes.substr(0, whole));
    cut(bytes.substr(whole), sink);
  }

  /// The unfinished last line, if there is one.
  template <class Sink>
  void flush(Sink&& sink) {
    if (rest_.empty()) return;
    const std::string last = std::exchange(rest_, {});
    sink(std::string_view(last));
  }

  std::size_t waiting_bytes() const { return rest_.size(); }

 private:
  std::size_t bytes_that_end_the_rest(std::string_view bytes) const {
    if (rest_.back() == '\r') return std::min<std::size_t>(bytes.size(), 1);
    const std::size_t end = bytes.find('\n');
    return end == std::string_view::npos ? bytes.size() : end + 1;
  }

  template <class Sink>
  void cut(std::string_view bytes, Sink& sink) {
    while (!bytes.empty()) {
      const std::size_t length = line_length(bytes);
      if (length == 0) break;
      sink(bytes.substr(0, length));
      bytes.remove_prefix(length);
    }
    rest_.assign(bytes);
  }

  // 0: no line is whole yet.
  std::size_t line_length(std::string_view bytes) const {
    const std::string_view window = bytes.substr(0, max_line_bytes_);
    const std::size_t newline = window.find('\n');
    const std::string_view text = window.substr(0, newline);
    // "\r\n" is one end; a "\r" that is the last byte so far may become one.
    const std::size_t carriage = text.find('\r');
    if (carriage != std::string_view::npos && carriage + 1 < text.size()) return carriage + 1;
    if (newline != std::string_view::npos) return newline + 1;
    return bytes.size() >= max_line_bytes_ ? max_line_bytes_ : 0;
  }

  std::size_t max_line_bytes_;
  std::string rest_;
};

/// A line without its end.
inline std::string_view without_end(std::string_view line) {
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
  return line;
}

}  // namespace muster::agent
