#include "agent/process/worker_process.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

namespace muster::agent {

namespace asio = boost::asio;

namespace {

Result<void> send_signal(pid_t target, int signal_number) {
  if (::kill(target, signal_number) == 0 || errno == ESRCH) return {};
  return errno_error(signal_name(signal_number) + " to " + (target < 0 ? "process group " : "process ") +
                         std::to_string(target < 0 ? -target : target),
                     errno);
}

}  // namespace

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::adopt(asio::any_io_executor executor, pid_t pid) {
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (pidfd < 0) return errno_error("pidfd of process " + std::to_string(pid), errno);
  return std::unique_ptr<WorkerProcess>(new WorkerProcess(std::move(executor), pid, pidfd));
}

WorkerProcess::WorkerProcess(asio::any_io_executor executor, pid_t pid, int pidfd)
    : pid_(pid), pidfd_(std::move(executor), pidfd) {}

WorkerProcess::~WorkerProcess() {
  if (!running_) return;
  end_group();
  static_cast<void>(::waitpid(pid_, nullptr, WNOHANG));  // may be too early: init reaps it after us
}

void WorkerProcess::on_end(Ended ended, MayLinger may_linger) {
  ended_ = std::move(ended);
  may_linger_ = std::move(may_linger);
  pidfd_.async_wait(asio::posix::descriptor_base::wait_read, [this](const boost::system::error_code& error) {
    if (error) return;
    main_process_ended();
  });
}

void WorkerProcess::main_process_ended() {
  end_seen_ = true;
  lingers_ = may_linger_ && may_linger_();
  collect();
}

void WorkerProcess::end_rest() {
  lingers_ = false;
  collect();
}

// While the leader is not reaped its number is ours, so this reaches no stranger; ESRCH: nobody is left.
void WorkerProcess::end_group() { static_cast<void>(::kill(-pid_, SIGKILL)); }

void WorkerProcess::collect() {
  if (!running_ || !end_seen_ || lingers_) return;
  end_group();
  int status = 0;
  const pid_t reaped = ::waitpid(pid_, &status, WNOHANG);
  if (reaped == 0) return;
  // If somebody else took it (ECHILD), it is not known to be a success.
  running_ = false;
  ended_(reaped == pid_ ? exit_cause_from_wait_status(status) : ExitCause::exited(255));
}

bool WorkerProcess::has_ended() {
  pollfd end{pidfd_.native_handle(), POLLIN, 0};
  return end_seen_ || ::poll(&end, 1, 0) == 1;
}

Result<void> WorkerProcess::signal_main(int signal_number) {
  if (!running_) return {};
  return send_signal(pid_, signal_number);
}

Result<void> WorkerProcess::signal_group(int signal_number) {
  if (!running_) return {};
  return send_signal(-pid_, signal_number);
}

}  // namespace muster::agent
