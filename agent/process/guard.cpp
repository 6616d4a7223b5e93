#include "agent/process/guard.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>

namespace muster::agent {

namespace {

struct Packet {
  char operation = 0;
  std::array<char, 3> zero{};
  std::int32_t group = 0;
};
static_assert(sizeof(Packet) == 8);

bool put(int fd, char operation, pid_t group) {
  Packet packet;
  packet.operation = operation;
  packet.group = group;
  return ::send(fd, &packet, sizeof packet, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof packet);
}

// ---- in the guard: no allocation of our own, few pages touched ------------------------------------------

constexpr std::size_t max_groups = 4096;  // more are found by their mark alone
constexpr int max_searches = 200;
constexpr long pause_between_searches_ns = 5'000'000;

struct Groups {
  std::array<pid_t, max_groups> known;
  std::size_t size = 0;

  void add(pid_t group) {
    if (size < max_groups) known[size++] = group;
  }
  void remove(pid_t group) {
    size = static_cast<std::size_t>(std::remove(known.begin(), known.begin() + size, group) - known.begin());
  }
};

// Reads in pieces; an entry that spans two pieces is completed by moving its start to the front.
bool started_with_id(pid_t pid, const char* id) {
  char path[40];
  std::snprintf(path, sizeof path, "/proc/%d/environ", pid);
  UniqueFd file(::open(path, O_RDONLY | O_CLOEXEC));
  if (!file) return false;
  const std::size_t length = std::strlen(id);
  char piece[4096];
  std::size_t kept = 0;
  for (;;) {
    const ssize_t got = ::read(file.get(), piece + kept, sizeof piece - kept);
    if (got <= 0) return false;
    const std::size_t size = kept + static_cast<std::size_t>(got);
    if (::memmem(piece, size, id, length)) return true;
    kept = std::min(size, length - 1);
    std::memmove(piece, piece + size - kept, kept);
  }
}

int kill_marked(const char* id) {
  DIR* folder = ::opendir("/proc");
  if (!folder) return 0;
  int found = 0;
  while (const dirent* entry = ::readdir(folder)) {
    const pid_t pid = std::atoi(entry->d_name);
    if (pid <= 0 || pid == ::getpid() || !started_with_id(pid, id)) continue;
    if (::kill(pid, SIGKILL) == 0) ++found;
  }
  ::closedir(folder);
  return found;
}

// No event tells that a stranger's child died, so the search is repeated until it finds nothing, which is
// after a few milliseconds unless something cannot be killed.
void end_everything(const Groups& groups, const JobCgroup& cgroup, const char* id) {
  for (std::size_t index = 0; index < groups.size; ++index)
    static_cast<void>(::kill(-groups.known[index], SIGKILL));  // gone already, or not ours: nothing to do
  cgroup.kill_all();
  for (int search = 0; search < max_searches && (kill_marked(id) > 0 || cgroup.has_processes()); ++search) {
    const timespec pause{0, pause_between_searches_ns};
    ::nanosleep(&pause, nullptr);
  }
}

[[noreturn]] void guard_main(int fd, const JobCgroup& cgroup, const char* id) {
  ::setsid();
  ::prctl(PR_SET_NAME, "muster-guard");
  for (const int number : {SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2}) ::signal(number, SIG_IGN);
  const int channel = 3;
  if (fd != channel) ::dup2(fd, channel);
  const int nothing = ::open("/dev/null", O_RDWR);
  for (int standard = 0; standard <= 2; ++standard) ::dup2(nothing, standard);
  ::close_range(4, ~0U, 0);
  cgroup.enter_and_leave();

  static Groups groups;
  for (;;) {
    Packet packet;
    const ssize_t got = ::recv(channel, &packet, sizeof packet, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    if (packet.operation == 'a') groups.add(packet.group);
    if (packet.operation == 'r') groups.remove(packet.group);
    if (packet.operation == 'q') {
      cgroup.remove();
      ::_exit(0);
    }
  }
  end_everything(groups, cgroup, id);
  cgroup.remove();
  ::_exit(0);
}

// Different for each agent that ever ran here; no id is a part of another.
std::string new_id() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return std::to_string(::getpid()) + "." + std::to_string(now.tv_sec) + "." + std::to_string(now.tv_nsec) +
         ";";
}

}  // namespace

Result<Guard> Guard::start() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return errno_error("the guard's channel", errno);
  UniqueFd ours(ends[0]);
  UniqueFd its(ends[1]);
  const std::string id = new_id();
  JobCgroup cgroup = JobCgroup::make(id.substr(0, id.size() - 1));
  const pid_t pid = ::fork();
  if (pid < 0) {
    cgroup.remove();
    return errno_error("the guard process", errno);
  }
  if (pid == 0) {
    ours.reset();
    guard_main(its.get(), cgroup, id.c_str());
  }
  // A muster started by a worker of another muster: its processes are to be found by both guards.
  const char* outer = std::getenv("MUSTER_AGENT");
  return Guard(pid, std::move(ours), std::string("MUSTER_AGENT=") + (outer ? outer : "") + id,
               std::move(cgroup));
}

Guard::Guard(pid_t pid, UniqueFd channel, std::string mark, JobCgroup cgroup)
    : pid_(pid), channel_(std::move(channel)), mark_(std::move(mark)), cgroup_(std::move(cgroup)) {}

Guard::Guard(Guard&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      channel_(std::move(other.channel_)),
      mark_(std::move(other.mark_)),
      cgroup_(std::move(other.cgroup_)) {}

Guard::~Guard() {
  if (pid_ < 0) return;
  channel_.reset();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  cgroup_.remove();  // where somebody killed the guard
}

// A guard that somebody killed cannot hear this; then there is nobody to tell.
void Guard::group_is_gone(pid_t group) { static_cast<void>(put(channel_.get(), 'r', group)); }
void Guard::all_is_over() { static_cast<void>(put(channel_.get(), 'q', 0)); }

void guard_announce(int fd, pid_t group) { static_cast<void>(put(fd, 'a', group)); }

}  // namespace muster::agent
