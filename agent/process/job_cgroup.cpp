#include "agent/process/job_cgroup.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

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

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void put(int fd, const char* text) { static_cast<void>(::write(fd, text, std::strlen(text))); }

// "muster-PID.SECONDS.NANOSECONDS", of a launcher that was killed together with its guard. Whoever is still in it stays:
// only an empty one can be removed.
void remove_left_behind(const fs::path& folder, const fs::path& proc) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    const std::string pid = name.substr(kPrefix.size(), name.find('.') - kPrefix.size());
    if (!fs::exists(proc / pid, error)) static_cast<void>(::rmdir(entry.path().c_str()));
  }
}

UniqueFd open_in(int folder, const char* name, int flags) {
  return UniqueFd(::openat(folder, name, flags | O_CLOEXEC));
}

}  // namespace

std::optional<fs::path> cgroup_v2_folder(const std::string& mountinfo, const std::string& cgroup) {
  const auto mount = cgroup2_mount(mountinfo);
  if (!mount) return std::nullopt;
  std::istringstream lines(cgroup);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("0::/")) continue;
    const fs::path within = fs::path(line.substr(3)).lexically_relative(mount->root);
    if (within.empty() || *within.begin() == "..") return std::nullopt;
    return (fs::path(mount->point) / within).lexically_normal();
  }
  return std::nullopt;
}

JobCgroup JobCgroup::make(const std::string& id, const fs::path& proc) {
  const auto above = cgroup_v2_folder(text_of(proc / "self/mountinfo"), text_of(proc / "self/cgroup"));
  // Controllers handed down would make the job compete with its neighbours, and its memory be counted apart.
  if (!above || text_of(*above / "cgroup.subtree_control").find_first_not_of(" \n") != std::string::npos)
    return {};
  remove_left_behind(*above, proc);
  JobCgroup made;
  made.name_ = std::string(kPrefix) + id;
  made.above_.reset(::open(above->c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!made.above_ || ::mkdirat(made.above_.get(), made.name_.c_str(), 0755) != 0) return {};
  made.folder_.reset(::openat(made.above_.get(), made.name_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  made.entrance_ = open_in(made.folder_.get(), "cgroup.procs", O_WRONLY);
  if (!made || !open_in(made.folder_.get(), "cgroup.kill", O_WRONLY)) {  // Linux before 5.14 has no such file
    made.remove();
    return {};
  }
  return made;
}

void JobCgroup::enter_and_leave() const {
  cgroup_enter(entrance());
  const auto back = open_in(above_.get(), "cgroup.procs", O_WRONLY);
  if (back) cgroup_enter(back.get());
}

void JobCgroup::kill_all() const {
  const auto kill = open_in(folder_.get(), "cgroup.kill", O_WRONLY);
  if (kill) put(kill.get(), "1");
}

bool JobCgroup::has_processes() const {
  const auto events = open_in(folder_.get(), "cgroup.events", O_RDONLY);
  char text[256];
  const ssize_t size = events ? ::read(events.get(), text, sizeof text) : -1;
  return size > 0 && ::memmem(text, static_cast<std::size_t>(size), "populated 1", 11) != nullptr;
}

void JobCgroup::remove() const {
  if (above_) static_cast<void>(::unlinkat(above_.get(), name_.c_str(), AT_REMOVEDIR));
}

void cgroup_enter(int entrance) {
  if (entrance >= 0) put(entrance, "0");
}

}  // namespace muster::agent
