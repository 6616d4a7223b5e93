#include "agent/process/job_cgroup.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <sstream>
#include <string_view>

#include "base/system_files.hpp"

namespace muster::agent {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "muster-";

struct Cgroup2Mount {
  std::string root;  ///< of the tree, as it is seen at `point`
  std::string point;
};

// A line is "41 31 0:38 ROOT POINT OPTIONS ... - TYPE SOURCE OPTIONS".
std::optional<Cgroup2Mount> cgroup2_mount(const std::string& mountinfo) {
  std::istringstream lines(mountinfo);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" - cgroup2 ") == std::string::npos) continue;
    std::istringstream fields(line);
    std::string ignored;
    Cgroup2Mount mount;
    if (fields >> ignored >> ignored >> ignored >> mount.root >> mount.point) return mount;
  }
  return std::nullopt;
}

void put(int fd, const char* text) { static_cast<void>(::write(fd, text, std::strlen(text))); }

// What launchers that ran within it have left, too. A folder with somebody in it stays.
void remove_tree(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_directory(error)) remove_tree(entry.path());
  static_cast<void>(::rmdir(folder.c_str()));
}

// "muster-PID.SECONDS.NANOSECONDS", of a launcher that was killed together with its guard. Whoever is still in it stays:
// only an empty one can be removed.
void remove_left_behind(const fs::path& folder, const fs::path& proc) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    const std::string pid = name.substr(kPrefix.size(), name.find('.') - kPrefix.size());
    if (!fs::exists(proc / pid, error)) remove_tree(entry.path());
  }
}

UniqueFd open_file(const std::string& path, int flags) {
  return UniqueFd(::open(path.c_str(), flags | O_CLOEXEC));
}

}  // namespace

std::optional<fs::path> cgroup_v2_folder(const std::string& mountinfo, const std::string& cgroup) {
  const auto mount = cgroup2_mount(mountinfo);
  if (!mount) return std::nullopt;
  for (const CgroupLine& line : parse_cgroup_lines(cgroup)) {
    if (!line.is_v2()) continue;
    const fs::path within = fs::path(line.path).lexically_relative(mount->root);
    if (within.empty() || *within.begin() == "..") return std::nullopt;
    return (fs::path(mount->point) / within).lexically_normal();
  }
  return std::nullopt;
}

JobCgroup JobCgroup::make(const std::string& id, const fs::path& proc) {
  const auto above =
      cgroup_v2_folder(text_of_file(proc / "self/mountinfo"), text_of_file(proc / "self/cgroup"));
  // Controllers handed down would make the job compete with its neighbours, and its memory be counted apart.
  if (!above || text_of_file(*above / "cgroup.subtree_control").find_first_not_of(" \n") != std::string::npos)
    return {};
  remove_left_behind(*above, proc);
  JobCgroup made;
  made.folder_ = *above / (std::string(kPrefix) + id);
  made.kill_file_ = made.folder_ + "/cgroup.kill";
  made.events_file_ = made.folder_ + "/cgroup.events";
  made.entrance_file_ = made.folder_ + "/cgroup.procs";
  made.exit_file_ = *above / "cgroup.procs";
  if (::mkdir(made.folder_.c_str(), 0755) != 0) return {};
  made.entrance_ = open_file(made.entrance_file_, O_WRONLY);
  if (!made || !open_file(made.kill_file_, O_WRONLY)) {  // Linux before 5.14 has no such file
    made.remove();
    return {};
  }
  return made;
}

void JobCgroup::enter_and_leave() const {
  for (const std::string& file : {std::cref(entrance_file_), std::cref(exit_file_)})
    cgroup_enter(open_file(file, O_WRONLY).get());
}

void JobCgroup::kill_all() const {
  const auto kill = open_file(kill_file_, O_WRONLY);
  if (kill) put(kill.get(), "1");
}

bool JobCgroup::has_processes() const {
  const auto events = open_file(events_file_, O_RDONLY);
  char text[256];
  const ssize_t size = events ? ::read(events.get(), text, sizeof text) : -1;
  return size > 0 && ::memmem(text, static_cast<std::size_t>(size), "populated 1", 11) != nullptr;
}

// By somebody else already, or not empty: nothing to do.
void JobCgroup::remove() const {
  if (!folder_.empty()) remove_tree(folder_);
}

void cgroup_enter(int entrance) {
  if (entrance >= 0) put(entrance, "0");
}

}  // namespace muster::agent
