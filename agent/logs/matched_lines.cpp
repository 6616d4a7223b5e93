#include "agent/logs/matched_lines.hpp"

#include "agent/logs/lines.hpp"

namespace muster::agent {

void MatchedLines::offer(std::string_view line, const LinePrefix& prefix, std::string_view clock) {
  const std::string_view text = without_end(line);
  if (!matcher_.matches(text)) return;
  prefix.append_to(block_, clock);
  block_.append(text).push_back('\n');
}

void MatchedLines::flush() {
  file_.write(block_);
  block_.clear();
}

}  // namespace muster::agent
