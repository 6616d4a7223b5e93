#include "agent/logs/last_lines.hpp"

#include <cstdint>

#include "agent/logs/lines.hpp"

namespace muster::agent {

void LastLines::add(std::string_view line) {
  if (max_lines_ == 0 || line.empty()) return;
  const std::string_view text = without_end(line).substr(0, kMaxBytesPerLine);
  const bool blank_after_bar = overwrite_last_ && text.empty();
  if (overwrite_last_ && !text.empty()) lines_.pop_back();
  if (!blank_after_bar) lines_.emplace_back(text);
  overwrite_last_ = !lines_.empty() && line.back() == '\r';
  if (lines_.size() > max_lines_) lines_.pop_front();
}

// Where nothing is overwritten, only the last of them can be among those that are kept.
void LastLines::add_all(std::string_view lines) {
  if (lines.find('\r') == std::string_view::npos) {
    std::size_t begin = lines.size();
    for (std::size_t count = 0; count <= max_lines_ && begin != 0; ++count) {
      const std::size_t end = begin < 2 ? std::string_view::npos : lines.rfind('\n', begin - 2);
      begin = end == std::string_view::npos ? 0 : end + 1;
    }
    if (begin > 0) overwrite_last_ = false;
    lines.remove_prefix(begin);
  }
  LineSplitter splitter(SIZE_MAX);
  splitter.feed(lines, [this](std::string_view line) { add(line); });
  splitter.flush([this](std::string_view line) { add(line); });
}

std::vector<std::string> LastLines::lines() const { return {lines_.begin(), lines_.end()}; }

}  // namespace muster::agent
