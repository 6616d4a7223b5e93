#include "agent/process/terminal_loan.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace muster::agent {

TerminalLoan::TerminalLoan(int terminal) : terminal_(::isatty(terminal) == 1 ? terminal : -1) {}

TerminalLoan::~TerminalLoan() { take_back(); }

void TerminalLoan::child_changed(pid_t worker) {
  if (terminal_ < 0) return;
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(worker), &info, WSTOPPED | WNOHANG) != 0 || info.si_pid != worker)
    return;
  const bool wants_terminal = info.si_status == SIGTTIN || info.si_status == SIGTTOU;
  const bool has_it = lent_;
  if (!wants_terminal && !has_it) return;  // somebody stopped it by hand, and may continue it
  take_back();
  // In the background ourselves, we are stopped as the worker was, until the shell brings us forward.
  const bool stop_ourselves = !wants_terminal || !we_are_in_foreground();
  if (stop_ourselves && ::kill(0, wants_terminal ? info.si_status : SIGTSTP) != 0) return;
  if (we_are_in_foreground()) lend(worker);
  static_cast<void>(::kill(-worker, SIGCONT));  // not reaped, so its group's number is its own
}

void TerminalLoan::take_back() {
  if (!lent_) return;
  lent_ = false;
  make_foreground(::getpgrp());
}

bool TerminalLoan::we_are_in_foreground() const { return ::tcgetpgrp(terminal_) == ::getpgrp(); }

void TerminalLoan::lend(pid_t worker) {
  lent_ = true;
  make_foreground(worker);
}

// A background group that sets the foreground group is stopped by SIGTTOU unless that is blocked. A terminal
// that went away (EIO) has no foreground to care for.
void TerminalLoan::make_foreground(pid_t group) {
  sigset_t ttou, before;
  ::sigemptyset(&ttou);
  ::sigaddset(&ttou, SIGTTOU);
  ::pthread_sigmask(SIG_BLOCK, &ttou, &before);
  static_cast<void>(::tcsetpgrp(terminal_, group));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace muster::agent
