// A memory cgroup with a limit, for one test.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/program.hpp"

namespace muster::test {

/// Below this process's own memory cgroup (version 1), or at the top (version 2). Where it cannot be made,
/// because this user or this machine does not allow it, made() is false.
class MemoryCgroup {
 public:
  explicit MemoryCgroup(std::size_t limit_mib) {
    const std::string name = unique_mark("muster-test");
    const std::filesystem::path v1 = "/sys/fs/cgroup/memory" + own_path_v1() + "/" + name;
    const std::filesystem::path v2 = "/sys/fs/cgroup/" + name;
    const std::string bytes = std::to_string(limit_mib << 20);
    made_ = make(v1, "memory.limit_in_bytes", bytes) || make(v2, "memory.max", bytes);
  }
  ~MemoryCgroup() {
    std::error_code ignored;  // it was never made
    std::filesystem::remove(folder_, ignored);
  }
  MemoryCgroup(const MemoryCgroup&) = delete;
  MemoryCgroup& operator=(const MemoryCgroup&) = delete;

  bool made() const { return made_; }

  /// `command`, run inside.
  std::vector<std::string> inside(std::vector<std::string> command) const {
    const std::string enter = "echo $$ > " + (folder_ / "cgroup.procs").string() + " && exec \"$@\"";
    command.insert(command.begin(), {"/bin/sh", "-c", enter, "sh"});
    return command;
  }

 private:
  static std::string own_path_v1() {
    std::ifstream file("/proc/self/cgroup");
    for (std::string line; std::getline(file, line);)
      if (const auto at = line.find(":memory:"); at != std::string::npos) return line.substr(at + 8);
    return "";
  }

  bool make(const std::filesystem::path& folder, const std::string& limit_file, const std::string& bytes) {
    std::error_code error;
    if (!std::filesystem::exists(folder.parent_path()) || !std::filesystem::create_directory(folder, error))
      return false;
    folder_ = folder;
    std::ofstream limit(folder / limit_file);
    limit << bytes << std::flush;
    const bool limited = static_cast<bool>(limit) && ::access((folder / "cgroup.procs").c_str(), W_OK) == 0;
    if (!limited) std::filesystem::remove(folder, error);
    return limited;
  }

  std::filesystem::path folder_;
  bool made_ = false;
};

}  // namespace muster::test
