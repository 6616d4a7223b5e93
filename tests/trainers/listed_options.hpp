// Which options a trainer's --help lists under a heading.
#pragma once

#include <set>
#include <sstream>
#include <string>

namespace muster::trainers {

/// "--epochs", ...; without --help itself.
inline std::set<std::string> listed_options(const std::string& help, const std::string& heading) {
  std::set<std::string> names;
  std::istringstream lines(help);
  bool under_it = false;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.front() != ' ') under_it = line == heading + ":";
    if (!under_it || !line.starts_with("  -")) continue;
    const auto begin = line.find("--");
    names.insert(line.substr(begin, line.find(' ', begin) - begin));
  }
  names.erase("--help");
  return names;
}

}  // namespace muster::trainers
