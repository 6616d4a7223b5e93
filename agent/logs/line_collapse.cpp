#include "agent/logs/line_collapse.hpp"

#include <algorithm>

namespace muster::agent {
namespace {
constexpr std::uint64_t kRoomBetween = std::uint64_t{1} << 32;  // for lines that move; 2^32 lines in all
constexpr int kMostOwnPassed = 4;
constexpr std::size_t kBytesBeside = 200;  // of a line that waits, about
}  // namespace

void LineCollapse::add(int worker, std::string_view text, Instant now) {
  // In a flood there is no time to look for equals; half of the room is for lines that nobody joins.
  const bool joinable = waiting_bytes_ <= limits_.max_waiting_bytes / 2;
  std::string key(text);
  const auto found = joinable ? equal_line(worker, key) : waiting_.end();
  if (found != waiting_.end() && move_before(found, worker)) {
    auto& workers = found->second.line.workers;
    if (workers.size() == 1) {
      own_places_of_[*workers.begin()].erase(found->first);
      share(*workers.begin(), found->first);
    }
    share(worker, found->first);
    workers.insert(worker);
    return;
  }
  const Place place = (waiting_.empty() ? handed_on_ : waiting_.rbegin()->first) + kRoomBetween;
  if (joinable) places_of_text_[key].insert(place);
  auto& own = own_places_of_[worker];
  own.insert(own.end(), place);
  waiting_bytes_ += text.size() + kBytesBeside;
  waiting_.emplace_hint(waiting_.end(), place,
                        Waiting{{{worker}, std::move(key)}, now + limits_.window, joinable});
}

void LineCollapse::share(int worker, Place place) {
  Place& last = shared_place_of_[worker];
  last = std::max(last, place);
}

/// The first that the worker's next line may join.
LineCollapse::Lines::iterator LineCollapse::equal_line(int worker, const std::string& text) {
  const auto places = places_of_text_.find(text);
  if (places == places_of_text_.end()) return waiting_.end();
  const auto shared = shared_place_of_.find(worker);
  auto place = places->second.upper_bound(shared == shared_place_of_.end() ? 0 : shared->second);
  const auto& own = own_places_of_[worker];
  // Others join the first that there is, so one of theirs behind one's own is rare: no long search for it.
  for (int looked = 0; place != places->second.end() && own.contains(*place); ++place)
    if (++looked == kMostOwnPassed) return waiting_.end();
  return place == places->second.end() ? waiting_.end() : waiting_.find(*place);
}

/// What the worker alone wrote and stands after this line. False: there is no room for it.
bool LineCollapse::move_before(Lines::iterator line, int worker) {
  auto& own = own_places_of_[worker];
  const std::vector<Place> later(own.upper_bound(line->first), own.end());
  const Place before = line == waiting_.begin() ? handed_on_ : std::prev(line)->first;
  const Place step = (line->first - before) / (later.size() + 1);
  if (step == 0) return false;
  Place to = before;
  for (const Place from : later) {
    to += step;
    auto moving = waiting_.extract(from);
    moving.key() = to;
    Waiting& waiting = moving.mapped();
    waiting.until = std::min(waiting.until, line->second.until);
    if (waiting.joinable) {
      auto& places = places_of_text_.at(waiting.line.text);
      places.erase(from);
      places.insert(to);
    }
    own.erase(from);
    own.insert(to);
    waiting_.insert(std::move(moving));
  }
  return true;
}

bool LineCollapse::complete(const Line& line) const {
  return std::includes(line.workers.begin(), line.workers.end(), expected_.begin(), expected_.end());
}

std::vector<LineCollapse::Line> LineCollapse::take(Instant now) {
  std::vector<Line> out;
  while (!waiting_.empty()) {
    const Waiting& oldest = waiting_.begin()->second;
    const bool may_go =
        oldest.until <= now || waiting_bytes_ > limits_.max_waiting_bytes || complete(oldest.line);
    if (!may_go) break;
    leave(out);
  }
  return out;
}

void LineCollapse::leave(std::vector<Line>& out) {
  const auto first = waiting_.begin();
  handed_on_ = first->first;
  Line& line = first->second.line;
  if (first->second.joinable) {
    const auto places = places_of_text_.find(line.text);
    places->second.erase(handed_on_);
    if (places->second.empty()) places_of_text_.erase(places);
  }
  if (line.workers.size() == 1) own_places_of_[*line.workers.begin()].erase(handed_on_);
  waiting_bytes_ -= line.text.size() + kBytesBeside;
  out.push_back(std::move(line));
  waiting_.erase(first);
}

std::optional<Instant> LineCollapse::wake_at() const {
  if (waiting_.empty()) return std::nullopt;
  return waiting_.begin()->second.until;
}

}  // namespace muster::agent
