#include "agent/logs/line_collapse.hpp"

#include <algorithm>

namespace muster::agent {

void LineCollapse::add(int worker, std::string_view text, Instant now) {
  std::uint64_t& next = next_number_of_[worker];
  std::string key(text);
  auto& numbers = numbers_of_text_[key];
  const auto found = std::lower_bound(numbers.begin(), numbers.end(), next);
  if (found != numbers.end()) {
    waiting_[*found - first_number_].line.workers.insert(worker);
    next = *found + 1;
    return;
  }
  const std::uint64_t number = first_number_ + waiting_.size();
  numbers.push_back(number);
  waiting_bytes_ += text.size();
  waiting_.push_back({{{worker}, std::move(key)}, now + limits_.window});
  next = number + 1;
}

bool LineCollapse::complete(const Line& line) const {
  return std::includes(line.workers.begin(), line.workers.end(), expected_.begin(), expected_.end());
}

std::vector<LineCollapse::Line> LineCollapse::take(Instant now) {
  std::vector<Line> out;
  while (!waiting_.empty()) {
    const Waiting& oldest = waiting_.front();
    const bool may_go =
        oldest.until <= now || waiting_bytes_ > limits_.max_waiting_bytes || complete(oldest.line);
    if (!may_go) break;
    leave(out);
  }
  return out;
}

void LineCollapse::leave(std::vector<Line>& out) {
  Line& line = waiting_.front().line;
  const auto numbers = numbers_of_text_.find(line.text);
  numbers->second.pop_front();
  if (numbers->second.empty()) numbers_of_text_.erase(numbers);
  waiting_bytes_ -= line.text.size();
  out.push_back(std::move(line));
  waiting_.pop_front();
  ++first_number_;
}

std::optional<Instant> LineCollapse::wake_at() const {
  if (waiting_.empty()) return std::nullopt;
  return waiting_.front().until;
}

}  // namespace muster::agent
