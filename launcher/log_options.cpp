#include "launcher/log_options.hpp"

#include <fmt/format.h>

#include "base/endpoint.hpp"
#include "launcher/text.hpp"

namespace muster::launcher {

namespace {

constexpr long kMaxRank = 1'000'000;

}  // namespace

Result<std::optional<std::set<int>>> parse_rank_set(const std::string& text) {
  std::optional<std::set<int>> ranks;
  if (text.empty()) return ranks;
  ranks.emplace();
  for (const std::string& part : parts_of(text, ',')) {
    const auto hyphen = part.find('-');
    const auto first = parse_integer(part.substr(0, hyphen), 0, kMaxRank);
    const auto last =
        hyphen == std::string::npos ? first : parse_integer(part.substr(hyphen + 1), 0, kMaxRank);
    if (!first || !last || *first > *last)
      return Error{"", fmt::format("'{}' is not allowed", text), "it takes ranks: 0,2 or 0-3,8"};
    for (long rank = *first; rank <= *last; ++rank) ranks->insert(static_cast<int>(rank));
  }
  return ranks;
}

std::vector<std::string> parse_filter_texts(const std::string& text) {
  std::vector<std::string> texts;
  std::string current;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != ',') {
      current += text[at];
    } else if (at + 1 < text.size() && text[at + 1] == ',') {
      current += ',';
      ++at;
    } else {
      if (!current.empty()) texts.push_back(current);
      current.clear();
    }
  }
  if (!current.empty()) texts.push_back(current);
  return texts;
}

}  // namespace muster::launcher
