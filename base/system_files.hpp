// The small files by which the kernel tells about itself, under /proc and /sys.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// Whole; empty if it cannot be read.
std::string text_of_file(const std::filesystem::path& path);

/// Without its line end; empty if it cannot be read.
std::string first_line_of_file(const std::filesystem::path& path);

/// One of the cgroups that a process is in: a line of /proc/PID/cgroup, "4:cpu,cpuacct:/a/b" or "0::/a/b".
struct CgroupLine {
  std::string controllers;  ///< "cpu,cpuacct"; empty in version 2
  std::string path;         ///< "/a/b", from the root of the hierarchy

  bool is_v2() const { return controllers.empty(); }
  bool controls(std::string_view controller) const;
};

/// Lines of another form are left out.
std::vector<CgroupLine> parse_cgroup_lines(const std::string& proc_cgroup);

}  // namespace muster
