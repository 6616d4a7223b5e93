#include "agent/process/guard.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/close_range.h>
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

#include "agent/process/process_name.hpp"
#include "base/exit_cause.hpp"

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

[[noreturn]] void guard_main(int fd, const JobCgroup& cgroup, const char* id, const sigset_t& mask) {
  ::setsid();
  name_this_process(kGuardName);
  for (const int number : {SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2}) ::signal(number, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
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
  const std::string id = new_id();
  Guard guard(id, JobCgroup::make(id.substr(0, id.size() - 1)));
  if (const auto forked = guard.fork_one(); !forked) return forked.error();
  return guard;
}

Guard::Guard(std::string id, JobCgroup cgroup) : id_(std::move(id)), cgroup_(std::move(cgroup)) {
  // A muster started by a worker of another muster: its processes are to be found by both guards.
  const char* outer = std::getenv("MUSTER_AGENT");
  mark_ = std::string("MUSTER_AGENT=") + (outer ? outer : "") + id_;
}

Guard::Guard(Guard&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      channel_(std::move(other.channel_)),
      id_(std::move(other.id_)),
      mark_(std::move(other.mark_)),
      cgroup_(std::exchange(other.cgroup_, {})) {}

// Signals wait until the child has its own dispositions: what the agent's handlers do is for the agent alone.
Result<void> Guard::fork_one() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return errno_error("the guard's channel", errno);
  UniqueFd ours(ends[0]);
  UniqueFd its(ends[1]);
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  const pid_t pid = ::fork();
  if (pid == 0) {
    channel_.reset();
    ours.reset();
    guard_main(its.get(), cgroup_, id_.c_str(), before);
  }
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return errno_error("the guard process", error);
  pid_ = pid;
  channel_ = std::move(ours);
  return {};
}

Result<std::string> Guard::replace(const std::vector<pid_t>& groups) {
  int status = 0;
  const pid_t ended = pid_;
  while (::waitpid(ended, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  if (const auto forked = fork_one(); !forked) return forked.error();
  for (const pid_t group : groups) guard_announce(fd(), group);
  return {boost::system::in_place_value,
          "pid " + std::to_string(ended) + " " + exit_cause_from_wait_status(status).sentence()};
}

Guard::~Guard() {
  channel_.reset();
  while (pid_ > 0 && ::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  cgroup_.remove();  // where somebody killed the guard
}

// A guard that somebody killed cannot hear this; then there is nobody to tell.
void Guard::group_is_gone(pid_t group) { static_cast<void>(put(channel_.get(), 'r', group)); }
void Guard::all_is_over() { static_cast<void>(put(channel_.get(), 'q', 0)); }

void guard_announce(int fd, pid_t group) { static_cast<void>(put(fd, 'a', group)); }

}  // namespace muster::agent
