#include "base/stream_map.hpp"

#include <fmt/format.h>

#include "base/endpoint.hpp"

namespace muster {

namespace {

constexpr long kMaxLocalRank = 1'000'000;

Error not_allowed(const std::string& text) {
  return Error{"streams '" + text + "'",
               "neither 0 (none), 1 (stdout), 2 (stderr), 3 (both) nor LOCAL-RANK:0-3,..."};
}

}  // namespace

Streams StreamMap::of(int local_rank) const {
  const auto found = of_rank.find(local_rank);
  return found == of_rank.end() ? of_others : found->second;
}

Result<StreamMap> parse_stream_map(const std::string& text) {
  StreamMap map;
  if (text.find(':') == std::string::npos) {
    const auto streams = parse_integer(text, 0, 3);
    if (!streams) return not_allowed(text);
    map.of_others = static_cast<Streams>(*streams);
    return map;
  }
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string pair = text.substr(begin, end - begin);
    begin = end + 1;
    const auto colon = pair.find(':');
    if (colon == std::string::npos) return not_allowed(text);
    const auto rank = parse_integer(pair.substr(0, colon), 0, kMaxLocalRank);
    const auto streams = parse_integer(pair.substr(colon + 1), 0, 3);
    if (!rank || !streams || !map.of_rank.emplace(*rank, static_cast<Streams>(*streams)).second)
      return not_allowed(text);
  }
  return map;
}

}  // namespace muster
