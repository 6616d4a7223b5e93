#include "launcher/log_options.hpp"

#include <fmt/format.h>

#include "base/endpoint.hpp"
#include "launcher/text.hpp"

namespace muster::launcher {

namespace {

constexpr long kMaxLocalRank = 1'000'000;

}  // namespace

Result<std::optional<std::vector<int>>> parse_local_ranks(const std::string& text) {
  std::optional<std::vector<int>> ranks;
  if (text.empty()) return ranks;
  ranks.emplace();
  for (const std::string& part : parts_of(text, ',')) {
    const auto rank = parse_integer(part, 0, kMaxLocalRank);
    if (!rank) return Error{"", fmt::format("'{}' is not allowed", text), "it takes local ranks: 0,2,3"};
    ranks->push_back(static_cast<int>(*rank));
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
