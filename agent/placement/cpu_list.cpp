#include "agent/placement/cpu_list.hpp"

#include <algorithm>
#include <set>
#include <sstream>

#include "base/endpoint.hpp"

namespace muster::agent {

namespace {
constexpr long kMaxCpu = 1 << 16;
}

std::vector<int> parse_cpu_list(const std::string& text) {
  std::set<int> found;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    part.erase(part.find_last_not_of(" \n") + 1);
    const auto dash = part.find('-');
    const auto low = parse_integer(part.substr(0, dash), 0, kMaxCpu);
    const auto high = dash == std::string::npos ? low : parse_integer(part.substr(dash + 1), 0, kMaxCpu);
    if (!low || !high) continue;
    for (long cpu = *low; cpu <= *high; ++cpu) found.insert(static_cast<int>(cpu));
  }
  return {found.begin(), found.end()};
}

std::string cpu_list_text(std::vector<int> cpus) {
  std::sort(cpus.begin(), cpus.end());
  std::string text;
  for (std::size_t first = 0; first < cpus.size();) {
    std::size_t last = first;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!text.empty()) text += ",";
    text += std::to_string(cpus[first]);
    if (last > first) text += "-" + std::to_string(cpus[last]);
    first = last + 1;
  }
  return text;
}

}  // namespace muster::agent
