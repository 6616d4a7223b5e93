// Sets of ranks as people write them. Pure.
#pragma once

#include <set>
#include <string>

namespace muster {

/// "rank 3", "ranks 0-4, 7".
inline std::string ranks_text(const std::set<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (auto rank = ranks.begin(); rank != ranks.end();) {
    const int first = *rank;
    int last = first;
    while (++rank != ranks.end() && *rank == last + 1) last = *rank;
    text += (text.back() == ' ' ? "" : ", ") + std::to_string(first);
    if (last > first) text += "-" + std::to_string(last);
  }
  return text;
}

}  // namespace muster
