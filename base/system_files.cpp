#include "base/system_files.hpp"

#include <fstream>
#include <sstream>

namespace muster {

std::string text_of_file(const std::filesystem::path& path) {
  const std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();  // of a folder: nothing, where iterators would throw
  return text.str();
}

std::string first_line_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string line;
  std::getline(file, line);
  return line;
}

bool CgroupLine::controls(std::string_view controller) const {
  const std::string wanted = "," + std::string(controller) + ",";
  return ("," + controllers + ",").find(wanted) != std::string::npos;
}

std::vector<CgroupLine> parse_cgroup_lines(const std::string& proc_cgroup) {
  std::vector<CgroupLine> found;
  std::istringstream lines(proc_cgroup);
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    found.push_back({line.substr(first + 1, second - first - 1), line.substr(second + 1)});
  }
  return found;
}

}  // namespace muster
