#include "agent/logs/last_lines.hpp"

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

std::vector<std::string> LastLines::lines() const { return {lines_.begin(), lines_.end()}; }

}  // namespace muster::agent
