#include "agent/process/spawn.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/process/v2/posix/default_launcher.hpp>
#include <boost/process/v2/process.hpp>
#include <cerrno>
#include <csignal>
#include <exception>

#include "agent/process/guard.hpp"

namespace muster::agent {

namespace process = boost::process::v2;

namespace {

constexpr int exit_before_exec = 126;

// Made before the fork: the child must not allocate.
class CpuMask {
 public:
  explicit CpuMask(const std::vector<int>& cpus) {
    if (cpus.empty()) return;
    const int count = *std::max_element(cpus.begin(), cpus.end()) + 1;
    bytes_ = CPU_ALLOC_SIZE(count);
    set_ = CPU_ALLOC(count);
    CPU_ZERO_S(bytes_, set_);
    for (const int cpu : cpus) CPU_SET_S(cpu, bytes_, set_);
  }
  ~CpuMask() {
    if (set_) CPU_FREE(set_);
  }
  CpuMask(const CpuMask&) = delete;
  CpuMask& operator=(const CpuMask&) = delete;

  // A set of which nothing may be used any more (a cpuset that shrank) leaves the child where the agent is.
  void bind_this_process() const {
    if (set_) static_cast<void>(::sched_setaffinity(0, bytes_, set_));
  }

 private:
  std::size_t bytes_ = 0;
  cpu_set_t* set_ = nullptr;
};

// What was pending is dropped: the agent got the same signal (a terminal's Ctrl-C) and passes it on itself.
// Whatever handler was inherited goes; exec would keep an ignored signal ignored.
void reset_signals() {
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction now {};
    if (::sigaction(number, nullptr, &now) != 0) continue;
    if (number == SIGHUP && now.sa_handler == SIG_IGN) continue;
    ::signal(number, SIG_IGN);
    ::signal(number, SIG_DFL);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Out of the way of 0, 1 and 2, so that no dup2 below overwrites a source of another.
int above_standard(int fd) { return fd > STDERR_FILENO ? fd : ::fcntl(fd, F_DUPFD_CLOEXEC, 3); }

bool place_standard_descriptors(const SpawnRequest& request) {
  const int in = above_standard(request.stdin_fd);
  const int out = above_standard(request.stdout_fd);
  const int error = above_standard(request.stderr_fd);
  return in >= 0 && out >= 0 && error >= 0 && ::dup2(in, STDIN_FILENO) >= 0 &&
         ::dup2(out, STDOUT_FILENO) >= 0 && ::dup2(error, STDERR_FILENO) >= 0;
}

// Runs in the child, between fork and exec.
bool set_up(const SpawnRequest& request, const CpuMask& cpus, pid_t agent) {
  if (::setpgid(0, 0) != 0) return false;
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return false;
  if (::getppid() != agent) ::_exit(exit_before_exec);  // it died before the line above took effect
  if (request.guard_fd >= 0) guard_announce(request.guard_fd, ::getpid());
  cgroup_enter(request.cgroup_entrance);
  cpus.bind_this_process();
  if (!place_standard_descriptors(request)) return false;
  reset_signals();
  if (request.descriptor_limit && ::setrlimit(RLIMIT_NOFILE, &*request.descriptor_limit) != 0) return false;
  // On exec, so that the launcher's pipe for exec's errno stays open until then.
  return ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) == 0;
}

// Boost.Process calls these by name in the child.
struct ChildSide {
  const SpawnRequest& request;
  const CpuMask& cpus;
  pid_t agent;

  template <class Launcher, class Path>
  process::error_code on_exec_setup(Launcher&, const Path&, const char* const*&) const {
    if (set_up(request, cpus, agent)) return {};
    return {errno, boost::system::system_category()};
  }
  // The launcher would call exit(): the agent's destructors and buffers are not the child's to run.
  template <class... Anything>
  void on_exec_error(Anything&&...) const {
    ::_exit(exit_before_exec);
  }
};

// A signal that comes between fork and reset_signals must not reach the agent's handlers in the child: they
// share the agent's pipe.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

Result<pid_t> spawn(boost::asio::any_io_executor executor, const SpawnRequest& request) {
  std::vector<const char*> environment;
  environment.reserve(request.environment.size() + 1);
  for (const std::string& entry : request.environment) environment.push_back(entry.c_str());
  environment.push_back(nullptr);

  const CpuMask cpus(request.cpus);
  const AllSignalsBlocked blocked;
  const pid_t agent = ::getpid();
  process::posix::default_launcher launcher;
  launcher.env = environment.data();
  boost::system::error_code error;
  try {
    auto child =
        launcher(executor, error, request.executable, request.arguments, ChildSide{request, cpus, agent});
    if (!error) child.detach();
  } catch (const std::exception&) {
    if (::getpid() != agent) ::_exit(exit_before_exec);  // Asio failed in the child
    throw;
  }
  if (error) {
    if (launcher.pid > 0) ::waitpid(launcher.pid, nullptr, 0);
    return errno_error(request.executable, error.value());
  }
  return launcher.pid;
}

}  // namespace muster::agent
